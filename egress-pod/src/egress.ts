import {
  EgressSpec,
  EgressStatus,
  FOU_PORT,
  type InvalidEgress,
  isInvalid,
  ObjectHead,
  orInvalid,
} from "@egress-nat/crds";
import type { GatewayConfig } from "@egress-nat/founat";
import { z } from "zod";

// A field that this program does not use must not keep it from its work, however it came to be wrong.
export const GatewayEgress = z.object({
  metadata: ObjectHead,
  spec: EgressSpec.pick({
    destinations: true,
    excludedDestinations: true,
    allowedNamespaces: true,
    fouSourcePortAuto: true,
    natBackend: true,
    drainTimeoutSeconds: true,
    uplinkProbe: true,
  }),
  status: EgressStatus.pick({ allowedNamespaces: true, observedGeneration: true, gateways: true }).optional(),
});
/** What a gateway needs of its Egress. */
export type GatewayEgress = z.infer<typeof GatewayEgress> & { readonly invalid?: string };

/** An Egress as the API has it, whether this gateway understands it or not. */
export type StoredEgress = GatewayEgress | InvalidEgress;

/** Parses an Egress from the API and drops what a gateway does not need. */
export const parseStoredEgress: (raw: unknown) => StoredEgress = orInvalid(GatewayEgress);

/**
 * What a gateway serves by.
 *
 * @param stored what the API has
 * @param known what it served by until now
 * @returns of an Egress that is not understood any more what was last known, but for what its status says; undefined where
 *   nothing is known
 */
export function lastUnderstood(
  stored: StoredEgress,
  known: GatewayEgress | undefined,
): GatewayEgress | undefined {
  if (!isInvalid(stored)) return stored;
  if (known?.metadata.uid !== stored.metadata.uid) return undefined;
  const { metadata, status, invalid } = stored;
  return { metadata, spec: known.spec, status, invalid };
}

/**
 * For how long a gateway serves on when it is to end, in milliseconds: a longer time than its pod has is for the gateways that
 * replace this one.
 *
 * @param egress undefined: it is gone, and leaves no time
 * @param limitSeconds what the pod has
 */
export function drainTimeoutMs(egress: StoredEgress | undefined, limitSeconds: number): number {
  return 1000 * Math.min(egress?.spec?.drainTimeoutSeconds ?? 0, limitSeconds);
}

/**
 * @param egress undefined: it does not exist (any more), so nobody may go anywhere
 * @param clusterRanges CIDRs that are never reached through a gateway
 * @param addresses the gateway's own
 */
export function gatewayConfig(
  egress: GatewayEgress | undefined,
  clusterRanges: readonly string[],
  addresses: readonly string[],
): GatewayConfig {
  return {
    addresses,
    port: FOU_PORT,
    sourcePortAuto: egress?.spec.fouSourcePortAuto ?? false,
    destinations: egress?.spec.destinations ?? [],
    excluded: [...clusterRanges, ...(egress?.spec.excludedDestinations ?? [])],
    backend: egress?.spec.natBackend ?? "nftables",
  };
}
