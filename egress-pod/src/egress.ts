import { EgressSpec, EgressStatus, FOU_PORT, ObjectHead } from "@egress-nat/crds";
import type { GatewayConfig } from "@egress-nat/founat";
import { z } from "zod";

// A field that this program does not use must not keep it from its work, however it came to be wrong.
const GatewayEgress = z.object({
  metadata: ObjectHead,
  spec: EgressSpec.pick({
    destinations: true,
    excludedDestinations: true,
    allowedNamespaces: true,
    fouSourcePortAuto: true,
    drainTimeoutSeconds: true,
  }),
  status: EgressStatus.pick({ allowedNamespaces: true, observedGeneration: true }).optional(),
});
/** What a gateway needs of its Egress. */
export type GatewayEgress = z.infer<typeof GatewayEgress>;

/** Parses an Egress from the API and drops what a gateway does not need. */
export function parseEgress(raw: unknown): GatewayEgress {
  return GatewayEgress.parse(raw);
}

/**
 * @param egress undefined: it does not exist (any more), so nobody may go anywhere
 * @param clusterRanges CIDRs that are never reached through a gateway
 */
export function gatewayConfig(
  egress: GatewayEgress | undefined,
  clusterRanges: readonly string[],
): GatewayConfig {
  return {
    port: FOU_PORT,
    sourcePortAuto: egress?.spec.fouSourcePortAuto ?? false,
    destinations: egress?.spec.destinations ?? [],
    excluded: [...clusterRanges, ...(egress?.spec.excludedDestinations ?? [])],
  };
}
