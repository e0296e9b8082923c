import { z } from "zod";

/** What the operator tells a gateway pod, by environment variables. */
export const GatewayEnvironment = z.object({
  EGRESS_NAMESPACE: z.string().describe("namespace of the Egress that this gateway serves"),
  EGRESS_NAME: z.string().describe("name of the Egress that this gateway serves"),
  POD_IPS: z
    .string()
    .transform((addresses) => addresses.split(","))
    .describe("the pod's addresses, as the API names them: others on its interfaces are not used"),
  CLUSTER_RANGES_NAMESPACE: z
    .string()
    .describe("namespace of the ConfigMap in which the operator publishes the cluster's networks"),
  DRAIN_TIMEOUT_SECONDS: z.coerce
    .number()
    .min(0)
    .default(Number.POSITIVE_INFINITY)
    .describe(
      "for how long the grace period of this pod lets it serve its flows once it is being terminated; earlier operators do not say",
    ),
});
