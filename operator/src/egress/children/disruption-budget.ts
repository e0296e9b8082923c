import type { Egress } from "@egress-nat/crds";
import type { V1PodDisruptionBudgetSpec } from "@kubernetes/client-node";
import { CHILD_RESOURCES, gatewayLabels, head, type Manifest } from "./manifest.ts";

/** The PodDisruptionBudget of the gateways, if the Egress asks for one. */
export function disruptionBudget(egress: Egress): Manifest | undefined {
  const budget = egress.spec.podDisruptionBudget;
  if (budget === undefined) return undefined;
  const spec = {
    ...budget,
    // A gateway that is not ready serves nobody: it must not hold up the drain of its node.
    unhealthyPodEvictionPolicy: "AlwaysAllow",
    selector: { matchLabels: { ...gatewayLabels(egress) } },
  } satisfies V1PodDisruptionBudgetSpec;
  return { ...head(CHILD_RESOURCES.disruptionBudget, egress), spec };
}
