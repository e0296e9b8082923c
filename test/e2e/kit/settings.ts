import { TOOLBOX_IMAGE } from "@egress-nat/tools/images";
import { z } from "zod";

/** What the environment says about a run of the e2e tests; `npm test -- --help` describes the variables for users. */
const Environment = z.object({
  E2E_KUBECONFIG: z.string().min(1).optional(),
  E2E_IMAGE: z.string().default(TOOLBOX_IMAGE),
  E2E_CLUSTER: z.string().min(1).optional(),
  E2E_LENGTH: z.enum(["short", "long"]).default("short"),
  E2E_KUBE_PROXY: z.enum(["nftables", "iptables"]).default("nftables"),
  E2E_RANGES: z.enum(["private", "mixed"]).default("private"),
  E2E_SELECTION: z.enum(["Service", "Agent"]).default("Service"),
});

export interface Settings {
  /** A cluster that is not the tests' own, with the product installed. */
  readonly kubeconfig: string | undefined;
  /** Image of the test pods. */
  readonly image: string;
  /** A cluster of `npm run cluster` to use, and to leave up. */
  readonly keptCluster: string | undefined;
  /** Repeat what is worth repeating. */
  readonly long: boolean;
  readonly proxyMode: "nftables" | "iptables";
  readonly ranges: "private" | "mixed";
  /** The `gatewaySelection` of the tests' Egresses. */
  readonly selection: "Service" | "Agent";
}

/** @throws an error that names the variables that do not hold */
export function settingsFrom(environment: NodeJS.ProcessEnv): Settings {
  const parsed = Environment.safeParse(environment);
  if (!parsed.success) throw new Error(`the e2e tests' environment:\n${z.prettifyError(parsed.error)}`);
  const { data } = parsed;
  return {
    kubeconfig: data.E2E_KUBECONFIG,
    image: data.E2E_IMAGE,
    keptCluster: data.E2E_CLUSTER,
    long: data.E2E_LENGTH === "long",
    proxyMode: data.E2E_KUBE_PROXY,
    ranges: data.E2E_RANGES,
    selection: data.E2E_SELECTION,
  };
}
