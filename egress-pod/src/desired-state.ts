import { canonicalAddress } from "@egress-nat/addresses";
import { namespaceTest } from "@egress-nat/crds";
import type { GatewayConfig } from "@egress-nat/founat";
import { type Clients, clientsOf } from "./clients.ts";
import { type GatewayEgress, gatewayConfig } from "./egress.ts";
import type { GatewaySlice } from "./slice.ts";

/** What a gateway has to be, as a whole, at one moment. */
export interface DesiredState {
  readonly config: GatewayConfig;
  readonly clients: Clients;
  /** The slices that this state holds: UID -> generation. */
  readonly slices: ReadonlyMap<string, number>;
}

/**
 * @param egress undefined when it does not exist: slices that the garbage collector has not taken yet count for nothing
 */
export function desiredState(
  egress: GatewayEgress | undefined,
  slices: readonly GatewaySlice[],
  clusterRanges: readonly string[],
  addresses: readonly string[],
): DesiredState {
  const valid = egress === undefined ? [] : slices;
  const mayUse = egress === undefined ? () => false : namespaceTest(egress);
  const own = new Set(addresses.flatMap((address) => canonicalAddress(address) ?? []));
  return {
    config: gatewayConfig(egress, clusterRanges, addresses),
    clients: clientsOf(valid, mayUse, own),
    slices: new Map(valid.map(({ metadata }) => [metadata.uid, metadata.generation])),
  };
}
