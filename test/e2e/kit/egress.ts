import type { Manifest } from "../../bed/workload/kubectl.ts";
import { type EgressName, egress } from "../../bed/workload/manifests.ts";
import type { World } from "./world.ts";

/** An Egress with this run's gateway selection, if its spec has none. */
export function egressIn(
  { selection }: Pick<World, "selection">,
  name: EgressName,
  spec: Readonly<Record<string, unknown>>,
): Manifest {
  return egress(name, { gatewaySelection: selection, ...spec });
}
