/** Requests of the CNI plugin, parsed. */

import { z } from "zod";
import type { AgentRequest } from "../cni/protocol.ts";

/** As the plugin checked it: it becomes a file's name. */
const ContainerId = z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/);

export const AgentRequestSchema = z.discriminatedUnion("operation", [
  z.object({
    operation: z.literal("add"),
    containerId: ContainerId,
    netns: z.string().startsWith("/"),
    ifname: z.string().min(1).max(15),
    pod: z.object({ namespace: z.string().min(1), name: z.string().min(1), uid: z.string().exactOptional() }),
    addresses: z.array(z.union([z.ipv4(), z.ipv6()])),
    annotations: z.record(z.string(), z.string()).exactOptional(),
  }),
  z.object({ operation: z.literal("delete"), containerId: ContainerId }),
  z.object({ operation: z.literal("check"), containerId: ContainerId }),
]) satisfies z.ZodType<AgentRequest>;
