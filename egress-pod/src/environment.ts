import { normalizeCidrs } from "@egress-nat/founat";
import { z } from "zod";

/** What the operator tells a gateway pod. */
export const Environment = z.object({
  EGRESS_NAMESPACE: z.string().describe("namespace of the Egress that this gateway serves"),
  EGRESS_NAME: z.string().describe("name of the Egress that this gateway serves"),
  CLUSTER_RANGES: z
    .string()
    .default("")
    .transform((list) =>
      list
        .split(",")
        .map((cidr) => cidr.trim())
        .filter(Boolean),
    )
    .refine(areCidrs, "not a comma-separated list of CIDRs")
    .describe("CIDRs of pods, Services and nodes, comma-separated; no client reaches them through a gateway"),
});
export type Environment = z.infer<typeof Environment>;

function areCidrs(list: readonly string[]): boolean {
  try {
    normalizeCidrs(list);
    return true;
  } catch {
    return false;
  }
}
