/**
 * The cluster's own networks: of pods, Services and nodes. The operator publishes them in one ConfigMap; agents and
 * gateways follow it, because what is in the cluster is never reached through a gateway.
 */

import { z } from "zod";
import { Cidr } from "./address.ts";
import { ObjectHead } from "./object-meta.ts";

/** The ConfigMap {@link CLUSTER_RANGES_CONFIG_MAP} as the API server returns it. */
export const ClusterRanges = z.object({
  metadata: ObjectHead.omit({ generation: true }),
  /** Absent until an operator has published them. */
  data: z
    .object({
      ranges: z
        .string()
        .transform((text) => text.split("\n").filter((line) => line !== ""))
        .pipe(z.array(Cidr)),
    })
    .exactOptional(),
});
export type ClusterRanges = z.infer<typeof ClusterRanges>;

/** The ConfigMap's data for these CIDRs: one on each line, for people who look at it. */
export function clusterRangesData(cidrs: readonly string[]): Readonly<Record<"ranges", string>> {
  return { ranges: cidrs.map((cidr) => `${cidr}\n`).join("") };
}
