/** What the operator is told by its environment. */

import { Cidr, HEALTH_PORTS } from "@egress-nat/crds";
import { OwnPod } from "@egress-nat/program";
import { z } from "zod";

export const Configuration = OwnPod.extend({
  EGRESS_POD_IMAGE: z
    .string()
    .describe("image of the gateway pods, such as registry.example/egress-nat-egress-pod:1.0"),
  EGRESS_POD_IMAGE_PULL_POLICY: z.enum(["Always", "IfNotPresent", "Never"]).default("IfNotPresent"),
  CLUSTER_RANGES: z
    .string()
    .default("")
    .transform((text) => text.split(",").filter((range) => range !== ""))
    .pipe(z.array(Cidr))
    .describe("networks of the cluster that the API does not name, in CIDR notation, separated by commas"),
  SERVICE_ADDRESSES_IN_CLUSTER: z
    .enum(["true", "false"])
    .default("false")
    .transform((text) => text === "true")
    .describe("whether external IPs and load-balancer addresses of Services are in the cluster as well"),
  MAX_CONCURRENT_ROLLOUTS: z.coerce
    .number()
    .int()
    .min(1)
    .default(2)
    .describe("number of Egresses whose gateways are replaced at a time in an upgrade"),
  HEALTH_PORT: z.coerce
    .number()
    .int()
    .default(HEALTH_PORTS.operator)
    .describe(
      "TCP port of /healthz, /readyz and /metrics; another one where several programs share a network namespace",
    ),
});
export type Configuration = z.infer<typeof Configuration>;
