import { EGRESS_LABEL, labelValue } from "@egress-nat/crds";
import { z } from "zod";
import type { Kubectl } from "./kubectl.ts";
import type { EgressName } from "./manifests.ts";

/** A pod with its place in the cluster. */
export interface PlacedPod {
  readonly name: string;
  readonly node: string;
  readonly ipv4: string;
  readonly ipv6: string;
}

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }),
      spec: z.object({ nodeName: z.string().default("") }),
      status: z.object({ podIPs: z.array(z.object({ ip: z.string() })).default([]) }),
    }),
  ),
});

/** The gateway pods of an Egress that are not being deleted. */
export async function gatewaysOf(kubectl: Kubectl, { namespace, name }: EgressName): Promise<PlacedPod[]> {
  const selector = `${EGRESS_LABEL}=${labelValue(name)}`;
  const { items } = await kubectl.get(Pods, "pods", "-n", namespace, "-l", selector);
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, spec, status }) => {
      const addresses = status.podIPs.map(({ ip }) => ip);
      return {
        name: metadata.name,
        node: spec.nodeName,
        ipv4: addresses.find((address) => address.includes(".")) ?? "",
        ipv6: addresses.find((address) => address.includes(":")) ?? "",
      };
    });
}

/** Waits until an Egress has all the gateways that it asks for. */
export async function gatewaysReady(kubectl: Kubectl, { namespace, name }: EgressName): Promise<void> {
  await kubectl.wait(["egress", name, "-n", namespace], "condition=Available", 180_000);
  await kubectl.run(["rollout", "status", `deployment/${name}`, "-n", namespace, "--timeout=120s"]);
}
