/** What the operator is told by its environment. */

import { z } from "zod";

/** For {@link parseEnvironment}. */
export const Configuration = z.object({
  EGRESS_POD_IMAGE: z
    .string()
    .describe("image of the gateway pods, such as registry.example/egress-nat-egress-pod:1.0"),
  EGRESS_POD_IMAGE_PULL_POLICY: z.enum(["Always", "IfNotPresent", "Never"]).default("IfNotPresent"),
  CLUSTER_RANGES: z
    .string()
    .default("")
    .transform((text) => text.split(",").filter((range) => range !== ""))
    .describe("networks of pods, Services and nodes, separated by commas"),
  POD_NAMESPACE: z.string().describe("namespace of the operator's own pod"),
  POD_NAME: z.string().describe("name of the operator's own pod"),
  LOG_LEVEL: z.string().default("info"),
});
export type Configuration = z.infer<typeof Configuration>;
