import { isAddress } from "@egress-nat/addresses";
import { OwnPod } from "@egress-nat/program";
import { z } from "zod";
import { NodeDirectories } from "./installer/environment.ts";

/** What the chart tells an agent. */
export const AgentEnvironment = z.object({
  ...NodeDirectories.shape,
  ...OwnPod.shape,
  NODE_NAME: z.string().describe("the node's name, by the downward API: spec.nodeName"),
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
