/** Which gateways the flows of a client begin with, and which keep those that they have. */

import { type Addresses, FAMILIES, type Family, familyOf, firstOfEach } from "@egress-nat/addresses";
import type { ClientGateway } from "@egress-nat/founat";
import { type Place, usableEndpoints } from "@egress-nat/kube";
import type { RecordedEgress } from "../records/schema.ts";
import { rendezvous } from "./rendezvous.ts";
import { target } from "./targets.ts";
import type { Gateway } from "./view.ts";

export interface Selection {
  readonly policy: Pick<RecordedEgress, "gatewaySelection" | "sessionAffinity">;
  readonly serviceIPs: readonly string[];
  readonly gateways: readonly Gateway[];
  /** Where the client is. */
  readonly place: Place;
  /** What tells clients apart: one gateway for each, with sessionAffinity ClientIP. */
  readonly client: string;
}

/**
 * Flows stay with the gateways that they began with, whoever picks them: what is picked here are the gateways of new
 * flows. One whose data path is dead keeps none. Where a client has one gateway, that which comes after it is a spare one.
 */
export function clientGateways(selection: Selection): readonly ClientGateway[] {
  const { policy, serviceIPs, gateways } = selection;
  const living = livingOf(gateways);
  const kept = isAnyHeard(gateways) ? living : gateways;
  // Also while nobody serves behind it: that may pass.
  const service: readonly ClientGateway[] =
    serviceIPs.length > 0 ? [{ ...firstOfEach(serviceIPs), flows: "existing" }] : [];
  if (policy.gatewaySelection === "Service") {
    const keepers = FAMILIES.flatMap((family) => naming(family, kept, "existing"));
    return [target(serviceIPs, gateways), ...service, ...keepers];
  }
  return [
    ...FAMILIES.flatMap((family) => {
      const picked = pick(family, living, selection);
      const others = kept.filter((gateway) => !picked.includes(gateway));
      const next = living.filter((gateway) => !picked.includes(gateway) && isAnswering(gateway));
      const spare = policy.sessionAffinity === "None" ? [] : pick(family, next, selection);
      return [
        ...picked.map((gateway) => of(family, gateway)),
        ...naming(family, spare, "spare"),
        ...naming(
          family,
          others.filter((gateway) => !spare.includes(gateway)),
          "existing",
        ),
      ];
    }),
    ...service,
  ];
}

/** Whether any is heard: else it may be this node that hears nothing, and to end flows would help nobody. */
export function isAnyHeard(gateways: readonly Gateway[]): boolean {
  return gateways.some(({ pulse }) => pulse === "alive" || pulse === "stranded");
}

/** Those that may take new flows. Of one that nobody has heard of it is not known whether it lives. */
function livingOf(gateways: readonly Gateway[]): readonly Gateway[] {
  const living = gateways.filter(({ pulse }) => pulse !== "dead");
  return living.some(({ pulse }) => pulse !== "unknown") ? living : gateways;
}

/** Those that answer, as long as any of them does: the heartbeat of all may be what is broken. */
function pick(
  family: Family,
  living: readonly Gateway[],
  { policy, place, client }: Selection,
): readonly Gateway[] {
  const ofFamily = living.filter((gateway) => addressOf(family, gateway) !== undefined);
  const usable = [ofFamily.filter(isAnswering), ofFamily].map((candidates) =>
    usableEndpoints(candidates, place),
  );
  const candidates = usable.find(({ length }) => length > 0) ?? [];
  if (policy.sessionAffinity === "None") return candidates;
  const owner = rendezvous(client, candidates);
  return owner === undefined ? [] : [owner];
}

/** Or may be, as far as anybody knows. */
function isAnswering({ pulse }: Gateway): boolean {
  return pulse === "alive" || pulse === "unknown";
}

function naming(
  family: Family,
  gateways: readonly Gateway[],
  flows: "existing" | "spare",
): readonly ClientGateway[] {
  return gateways.flatMap((gateway) => {
    const addresses = of(family, gateway);
    return addresses[family] === undefined ? [] : [{ ...addresses, flows }];
  });
}

function of(family: Family, gateway: Gateway): Addresses {
  const address = addressOf(family, gateway);
  return address === undefined ? {} : { [family]: address };
}

function addressOf(family: Family, { addresses }: Gateway): string | undefined {
  return addresses.find((address) => familyOf(address) === family);
}
