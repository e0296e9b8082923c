import type { Egress } from "@egress-nat/crds";
import type { V1PodDisruptionBudgetSpec } from "@kubernetes/client-node";
import { CHILD_RESOURCES, gatewayLabels, head, type Manifest } from "./manifest.ts";

/** The PodDisruptionBudget of the gateways, if the Egress asks for one. */
export function disruptionBudget(egress: Egress): Manifest | undefined {
  const budget = egress.spec.podDisruptionBudget;
  if (budget === undefined) return undefined;
  const spec = {
    ...budget,
    // A gateway that is not ready gets no new flows from its Service, though it may forward those that it has: they are given
    // up, because a gateway that never gets ready would hold up the drain of its node for ever.
    unhealthyPodEvictionPolicy: "AlwaysAllow",
    selector: { matchLabels: { ...gatewayLabels(egress) } },
  } satisfies V1PodDisruptionBudgetSpec;
  return { ...head(CHILD_RESOURCES.disruptionBudget, egress), spec };
}
