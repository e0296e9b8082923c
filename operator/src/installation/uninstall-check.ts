/** `uninstall-check`: refuses to uninstall while there are Egresses. */

import { EGRESS_RESOURCE } from "@egress-nat/crds";
import {
  createTransport,
  KubeError,
  loadCredentials,
  objectKey,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { z } from "zod";

const Named = z.object({ metadata: z.object({ name: z.string(), namespace: z.string() }) });

/** How many names a refusal shows. */
const SHOWN = 10;

const TIMEOUT_MS = 60_000;

/** Tells a person, not a log reader: Helm prints the output of the hook. @returns the exit code */
export async function uninstallCheck(): Promise<number> {
  const logger = createLogger({ name: "egress-nat-uninstall-check", level: "warn" });
  const transport = createTransport({ credentials: await loadCredentials(), logger });
  try {
    await refuseWhileEgressesExist(transport, AbortSignal.timeout(TIMEOUT_MS));
    console.log("no Egress is left: egress-nat can be uninstalled");
    return 0;
  } catch (error) {
    console.error(error instanceof EgressesLeft || error instanceof KubeError ? error.message : error);
    return 1;
  } finally {
    transport.close();
  }
}

/** @throws EgressesLeft */
export async function refuseWhileEgressesExist(transport: Transport, signal: AbortSignal): Promise<void> {
  const egresses = new ResourceClient(transport, EGRESS_RESOURCE, (raw) => Named.parse(raw));
  const { items } = await egresses.list({ signal });
  if (items.length > 0) throw new EgressesLeft(items.map(objectKey));
}

/** What a person reads who tried `helm uninstall`. */
export class EgressesLeft extends Error {
  readonly code = "EgressesLeft";
  readonly retryable = false;

  constructor(egresses: readonly string[]) {
    const names = [...egresses.slice(0, SHOWN), ...(egresses.length > SHOWN ? ["..."] : [])].join(", ");
    const [are, them, their] =
      egresses.length === 1
        ? ["is 1 Egress", "it", "its"]
        : [`are ${egresses.length} Egresses`, "them", "their"];
    super(
      `egress-nat is not uninstalled: there ${are} (${names}), and ${their} clients would be cut off.\n` +
        `List ${them}:\n\n    kubectl get egresses -A\n\n` +
        `Delete ${them}, move ${their} clients elsewhere, and run \`helm uninstall\` again. To keep egress-nat instead, tell Helm,\n` +
        "which upgrades no release that it has begun to uninstall, with the last revision that `helm history` shows:\n\n" +
        "    helm rollback RELEASE REVISION",
    );
    this.name = "EgressesLeft";
  }
}
