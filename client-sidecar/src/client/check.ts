import { isDeepStrictEqual } from "node:util";
import { FounatError } from "@egress-nat/founat";
import type { EgressView } from "../gateways/view.ts";
import type { ClientRecord } from "../records/schema.ts";
import { clientConfig } from "./configuration.ts";
import { ClientError } from "./error.ts";
import type { PodNetworks } from "./networks.ts";
import type { ClientRegistry } from "./registry.ts";

export interface CheckOptions {
  readonly registry: Pick<ClientRegistry, "owner">;
  readonly networks: Pick<PodNetworks, "apply" | "check" | "isSteered">;
  readonly view: EgressView;
}

/**
 * Whether a client is what it should be.
 *
 * @param found where its pod is said to be, and with which addresses
 * @throws ClientError `differs`
 */
export async function checkClient(
  { registry, networks, view }: CheckOptions,
  record: ClientRecord,
  found: Pick<ClientRecord, "netns" | "addresses">,
): Promise<void> {
  const owner = registry.owner(record.netns) ?? record;
  const config = clientConfig(owner, view);
  const look = async () => {
    // What steering has left to do is no difference, and is done within seconds anyway.
    if (networks.isSteered(found.netns)) await networks.apply(found.netns, config);
    return networks.check(found.netns, config);
  };
  const differences = [
    ...addressDifferences(record.addresses, found.addresses),
    ...(await look().catch(missingUplink)),
  ];
  if (differences.length === 0) return;
  const { namespace, name } = record.pod;
  throw new ClientError({
    reason: "differs",
    message: `the network namespace of pod ${namespace}/${name} differs from what it should be: ${differences.join("; ")}`,
    remedy: "the node agent repairs it within seconds; if not, its log says why",
  });
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
