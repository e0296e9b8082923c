/** What the chart tells an agent, by environment variables. */

import { isAddress } from "@egress-nat/addresses";
import { OwnPod } from "@egress-nat/program";
import { z } from "zod";

/** The node's CNI directories, as the containers see them. */
export const NodeDirectories = z.object({
  CNI_BIN_DIR: z.string().describe("the node's directory of CNI plugins, mounted: /host/opt/cni/bin"),
  CNI_CONF_DIR: z
    .string()
    .describe("the node's directory of CNI configurations, mounted: /host/etc/cni/net.d"),
});

export const AgentEnvironment = NodeDirectories.extend({
  ...OwnPod.shape,
  NODE_NAME: z.string().describe("the node's name, by the downward API: spec.nodeName"),
  NODE_ZONE: z
    .string()
    .transform((zone) => zone || undefined)
    .optional()
    .describe("the node's zone, as Kubernetes copies it to pods; empty where it does not, or there is none"),
  HEALTH_ADDRESS: z
    .string()
    .refine(isAddress)
    .optional()
    .describe(
      "address to serve health and metrics on, from the chart's metrics.agentAddress; all addresses of the node where it is not set",
    ),
  STARTUP_TAINT: z
    .string()
    .min(1)
    .optional()
    .describe("key of the taint to remove from the node: the chart's nodeAgent.startupTaint"),
});
