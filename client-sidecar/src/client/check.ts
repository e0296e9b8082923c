import { isDeepStrictEqual } from "node:util";
import { FounatError } from "@egress-nat/founat";
import { Deadline, pause } from "@egress-nat/kube";
import type { EgressView } from "../gateways/view.ts";
import type { ClientRecord } from "../records/schema.ts";
import { clientConfig } from "./configuration.ts";
import { ClientError } from "./error.ts";
import type { PodNetworks } from "./networks.ts";
import type { Reapplier } from "./reapplier.ts";
import type { ClientRegistry } from "./registry.ts";

const POLL_MS = 25;

/** Below the patience of the plugin, and of whoever has called it. */
const LOOK_PATIENCE_MS = 5_000;

export interface CheckOptions {
  readonly registry: Pick<ClientRegistry, "owner">;
  readonly networks: Pick<PodNetworks, "check">;
  readonly reapplier: Pick<Reapplier, "reapply" | "isDue">;
  readonly view: EgressView;
}

/**
 * Whether a client is what it should be.
 *
 * @param found where its pod is said to be, and with which addresses
 * @throws ClientError `differs`
 */
export async function checkClient(
  options: CheckOptions,
  record: ClientRecord,
  found: Pick<ClientRecord, "netns" | "addresses">,
  signal: AbortSignal,
): Promise<void> {
  const differences = [
    ...addressDifferences(record.addresses, found.addresses),
    ...(await lastingDifferences(options, record, found.netns, signal)),
  ];
  if (differences.length === 0) return;
  const { namespace, name } = record.pod;
  throw new ClientError({
    reason: "differs",
    message: `the network namespace of pod ${namespace}/${name} differs from what it should be: ${differences.join("; ")}`,
    remedy: "the node agent repairs it within seconds; if not, its log says why",
  });
}

/** What a steering has left to do is none. It would be done within seconds anyway, and is done at once. */
async function lastingDifferences(
  { registry, networks, reapplier, view }: CheckOptions,
  record: ClientRecord,
  netns: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const owner = registry.owner(record.netns) ?? record;
  using patience = new Deadline(LOOK_PATIENCE_MS, signal);
  for (;;) {
    if (reapplier.isDue(owner)) reapplier.reapply([owner]);
    while (reapplier.isDue(owner) && (await pause(POLL_MS, patience.signal)));
    const differences = await networks.check(netns, clientConfig(owner, view)).catch(missingUplink);
    if (differences.length === 0 || !reapplier.isDue(owner) || patience.signal.aborted) return differences;
  }
}

function addressDifferences(client: readonly string[], result: readonly string[]): string[] {
  if (isDeepStrictEqual(client.toSorted(), result.toSorted())) return [];
  return [`the client's addresses are ${client.join(", ")}, and those of prevResult ${result.join(", ")}`];
}

/** @throws what it was given, where that is of another kind */
function missingUplink(err: unknown): readonly string[] {
  if (err instanceof FounatError && err.code === "uplink-missing") return [err.message];
  throw err;
}
