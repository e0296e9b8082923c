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
  readonly networks: Pick<PodNetworks, "check" | "isSteered">;
  readonly reapplier: Pick<Reapplier, "reapply">;
  readonly view: EgressView;
}

/**
 * Whether a client is what it should be.
 *
 * @param found where its pod is said to be, and with which addresses
 * @throws ClientError `differs`
 */
export async function checkClient(
  { registry, networks, reapplier, view }: CheckOptions,
  record: ClientRecord,
  found: Pick<ClientRecord, "netns" | "addresses">,
  signal: AbortSignal,
): Promise<void> {
  const owner = registry.owner(record.netns) ?? record;
  await lookAfterSteering({ networks, reapplier }, owner, signal);
  const differences = [
    ...addressDifferences(record.addresses, found.addresses),
    ...(await networks.check(found.netns, clientConfig(owner, view)).catch(missingUplink)),
  ];
  if (differences.length === 0) return;
  const { namespace, name } = record.pod;
  throw new ClientError({
    reason: "differs",
    message: `the network namespace of pod ${namespace}/${name} differs from what it should be: ${differences.join("; ")}`,
    remedy: "the node agent repairs it within seconds; if not, its log says why",
  });
}

/** What steering has left to do is no difference. It would be done within seconds anyway, and is done at once. */
async function lookAfterSteering(
  { networks, reapplier }: Pick<CheckOptions, "networks" | "reapplier">,
  client: ClientRecord,
  signal: AbortSignal,
): Promise<void> {
  if (!networks.isSteered(client.netns)) return;
  reapplier.reapply([client]);
  using patience = new Deadline(LOOK_PATIENCE_MS, signal);
  while (networks.isSteered(client.netns) && (await pause(POLL_MS, patience.signal)));
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
