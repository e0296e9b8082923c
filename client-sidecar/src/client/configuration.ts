/** From the Egresses of a client to what its network namespace should be: pure functions. */

import { FOU_PORT, isInvalid, namespaceTest } from "@egress-nat/crds";
import type { ClientConfig, ClientEgress } from "@egress-nat/founat";
import { clientGateways, type HeardGateway, inEachFamily, isAnyHeard } from "../gateways/selection.ts";
import type { EgressFacts, EgressView } from "../gateways/view.ts";
import { egressKey } from "../records/egress-key.ts";
import { type ClientRecord, RecordedEgress } from "../records/schema.ts";

/** What is kept of an Egress with each of its clients, for the time when the Egress is gone, or not understood. */
export function recordEgress({ metadata: { namespace, name }, spec }: EgressFacts): RecordedEgress {
  return RecordedEgress.parse({ ...spec, namespace, name });
}

/** What is known of an Egress now, or was last known of one that is gone, or not understood any more. */
export function lastKnown(recorded: RecordedEgress, view: Pick<EgressView, "egress">): RecordedEgress {
  const egress = view.egress(recorded);
  return egress === undefined || isInvalid(egress) ? recorded : recordEgress(egress);
}

/**
 * What a client's network namespace should be. An Egress that is gone, or not understood any more, is guarded by what was
 * last known of it; in the second case its gateways serve on. One that the pod's namespace may not use has no gateway for
 * it: clients fail closed.
 */
export function clientConfig(
  record: Pick<ClientRecord, "ifname" | "pod" | "egresses">,
  view: EgressView,
): ClientConfig {
  const known = record.egresses.map((recorded) => knownEgress(record.pod, recorded, view));
  const moving = addressesOfSeveral(known);
  return {
    uplink: record.ifname,
    egresses: known.map((egress) => clientEgress(record.pod, egress, moving, view)),
    clusterRanges: view.clusterRanges,
  };
}

/** An Egress as a client may use it. */
interface KnownEgress {
  readonly name: string;
  readonly policy: RecordedEgress;
  readonly serviceIPs: readonly string[];
  readonly named: readonly HeardGateway[];
  /** Those that the API has named until a moment ago. */
  readonly vanished: readonly HeardGateway[];
}

function knownEgress(pod: ClientRecord["pod"], recorded: RecordedEgress, view: EgressView): KnownEgress {
  const egress = view.egress(recorded);
  const isAllowed = egress !== undefined && namespaceTest(egress)(pod.namespace);
  const policy = lastKnown(recorded, view);
  const isPicked = isAllowed && policy.gatewaySelection === "Agent";
  return {
    name: egressKey(recorded),
    policy,
    serviceIPs: isAllowed ? (egress.status?.serviceIPs ?? []) : [],
    named: inEachFamily(isAllowed ? view.gateways(recorded) : [], view),
    vanished: inEachFamily(isPicked ? view.vanishedGateways(recorded) : [], view),
  };
}

function addressesOf(gateways: readonly HeardGateway[]): readonly string[] {
  return gateways.flatMap(({ addresses }) => addresses);
}

/**
 * An address that moves from one Egress to another is nobody's for as long as both have named it a moment ago: that is what
 * ends the flows of the former one, which the latter's gateway would send on from another address.
 */
function addressesOfSeveral(egresses: readonly KnownEgress[]): ReadonlySet<string> {
  const several = new Set<string>();
  const seen = new Set<string>();
  for (const { named, vanished } of egresses) {
    const addresses = new Set(addressesOf([...named, ...vanished]));
    for (const address of addresses) (seen.has(address) ? several : seen).add(address);
  }
  return several;
}

function clientEgress(
  pod: ClientRecord["pod"],
  { name, policy, serviceIPs, named, vanished }: KnownEgress,
  moving: ReadonlySet<string>,
  view: EgressView,
): ClientEgress {
  const isHearing = isAnyHeard([...named, ...vanished]);
  const gateways = [...named, ...(isHearing ? vanished.filter(mayServe) : vanished)];
  return {
    name,
    destinations: policy.destinations,
    excluded: policy.excludedDestinations,
    originatingOnly: policy.originatingOnly,
    sourcePortAuto: policy.fouSourcePortAuto,
    gateways: clientGateways({ policy, serviceIPs, gateways, moving, place: view.place, client: pod.uid }),
    peers: [...new Set([...serviceIPs, ...addressesOf(gateways)])].sort(),
    port: FOU_PORT,
  };
}

/** Whether flows of a gateway that the API names no longer may go on. */
function mayServe({ pulse }: HeardGateway): boolean {
  return pulse !== "suspect" && pulse !== "dead";
}

/** The Egresses of a client that its namespace may not use (any more), as people name them. */
export function refusedEgresses(
  { pod, egresses }: Pick<ClientRecord, "pod" | "egresses">,
  view: EgressView,
): string[] {
  return egresses.flatMap((recorded) => {
    const egress = view.egress(recorded);
    return egress === undefined || namespaceTest(egress)(pod.namespace) ? [] : [egressKey(recorded)];
  });
}
