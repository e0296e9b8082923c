/** Which gateways the flows of a client begin with, and which keep those that they have. */

import { FAMILIES, type Family, familyOf, firstOfEach } from "@egress-nat/addresses";
import type { ClientGateway } from "@egress-nat/founat";
import { type Place, usableEndpoints } from "@egress-nat/kube";
import type { RecordedEgress } from "../records/schema.ts";
import { isHeard, type Pulse } from "./pulse.ts";
import { rendezvous } from "./rendezvous.ts";
import { target } from "./targets.ts";
import type { EgressView, Gateway } from "./view.ts";

/**
 * With which the flows of one client begin. Each has a link in each family, whose memory is charged to the agent, and in a
 * rollout twice as many have: a client tells at most 254 addresses apart.
 */
const MOST_GATEWAYS = 32;

/** A gateway, and what has been heard of it at the addresses that are named here. */
export interface HeardGateway extends Gateway {
  readonly pulse: Pulse;
}

export interface Selection {
  readonly policy: Pick<RecordedEgress, "gatewaySelection" | "sessionAffinity">;
  readonly serviceIPs: readonly string[];
  readonly gateways: readonly HeardGateway[];
  /** Addresses that another Egress of the client names as well, because they have moved: nothing is led there. */
  readonly moving: ReadonlySet<string>;
  /** Where the client is. */
  readonly place: Place;
  /** What tells clients apart: one gateway for each, with sessionAffinity ClientIP. */
  readonly client: string;
}

/** Each as one gateway in each family: the node may have lost its way to it in one of them only. */
export function inEachFamily(
  gateways: readonly Gateway[],
  view: Pick<EgressView, "pulse">,
): readonly HeardGateway[] {
  return gateways.flatMap((gateway) =>
    Object.values(firstOfEach(gateway.addresses)).map((address) => ({
      ...gateway,
      addresses: [address],
      pulse: view.pulse(address),
    })),
  );
}

/**
 * Flows stay with the gateways that they began with, whoever picks them: what is picked here are the gateways of new
 * flows. One whose data path is dead keeps none. Where a client has one gateway, that which comes after it is a spare one.
 */
export function clientGateways(selection: Selection): readonly ClientGateway[] {
  const { policy, serviceIPs, moving } = selection;
  const gateways = selection.gateways.filter(({ addresses }) => !addresses.some((each) => moving.has(each)));
  // Also while nobody serves behind it: that may pass.
  const service: readonly ClientGateway[] =
    serviceIPs.length > 0 ? [{ ...firstOfEach(serviceIPs), flows: "existing" }] : [];
  if (policy.gatewaySelection === "Service") {
    const keepers = FAMILIES.flatMap((family) => naming(family, keptOf(family, gateways), "existing"));
    return [target(serviceIPs, selection.gateways), ...service, ...keepers];
  }
  return [
    ...FAMILIES.flatMap((family) => {
      const living = livingOf(family, gateways);
      const picked = pick(living, selection);
      const others = keptOf(family, gateways).filter((gateway) => !picked.includes(gateway));
      const next = living.filter((gateway) => !picked.includes(gateway) && isAnswering(gateway));
      const spare = policy.sessionAffinity === "None" ? [] : pick(next, selection);
      return [
        ...naming(family, picked),
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
export function isAnyHeard(gateways: readonly HeardGateway[]): boolean {
  return gateways.some(({ pulse }) => isHeard(pulse));
}

function keptOf(family: Family, gateways: readonly HeardGateway[]): readonly HeardGateway[] {
  return isAnyHeard(gateways) ? livingOf(family, gateways) : ofFamily(family, gateways);
}

/** Those that may take new flows. Of one that nobody has heard of it is not known whether it lives. */
function livingOf(family: Family, gateways: readonly HeardGateway[]): readonly HeardGateway[] {
  const all = ofFamily(family, gateways);
  const living = all.filter(({ pulse }) => pulse !== "dead");
  return living.some(({ pulse }) => pulse !== "unknown") ? living : all;
}

/** Those that answer, as long as any of them does: the heartbeat of all may be what is broken. */
function pick(
  living: readonly HeardGateway[],
  { policy, place, client }: Selection,
): readonly HeardGateway[] {
  const usable = [living.filter(isAnswering), living].map((candidates) => usableEndpoints(candidates, place));
  const candidates = usable.find(({ length }) => length > 0) ?? [];
  return rendezvous(client, candidates, policy.sessionAffinity === "None" ? MOST_GATEWAYS : 1);
}

/** Or may be, as far as anybody knows. */
function isAnswering({ pulse }: HeardGateway): boolean {
  return pulse === "alive" || pulse === "unknown";
}

function naming(
  family: Family,
  gateways: readonly HeardGateway[],
  flows?: "existing" | "spare",
): readonly ClientGateway[] {
  return gateways.map((gateway) => ({ [family]: addressOf(family, gateway), ...(flows && { flows }) }));
}

function ofFamily(family: Family, gateways: readonly HeardGateway[]): readonly HeardGateway[] {
  return gateways.filter((gateway) => addressOf(family, gateway) !== undefined);
}

function addressOf(family: Family, { addresses }: Gateway): string | undefined {
  return addresses.find((address) => familyOf(address) === family);
}
