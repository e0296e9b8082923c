import { EgressFacts } from "../gateways/view.ts";

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
