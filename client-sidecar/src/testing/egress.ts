import { EgressFacts, parseStoredEgress, type StoredEgress } from "../gateways/view.ts";

/** Egress internet/nat for all of IPv4, with what a test cares about in place of the defaults. */
export function egress(
  spec: object = {},
  serviceIPs: readonly string[] = ["10.96.0.10"],
  status: object = {},
): EgressFacts {
  return EgressFacts.parse({
    metadata: { namespace: "internet", name: "nat", uid: "egress-uid", generation: 1 },
    spec: { destinations: ["0.0.0.0/0"], ...spec },
    status: { serviceIPs, observedGeneration: 1, ...status },
  });
}

/** The same as another release has stored it. */
export function notUnderstood(status: object = {}): StoredEgress {
  return parseStoredEgress({
    metadata: egress().metadata,
    spec: { destinations: ["192.0.2.0/33"] },
    status: { serviceIPs: ["10.96.0.10"], observedGeneration: 1, ...status },
  });
}
