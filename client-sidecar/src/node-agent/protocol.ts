/** Requests of the CNI plugin, parsed. */

import { isAddress } from "@egress-nat/addresses";
import { z } from "zod";
import { isName } from "../cni/name.ts";
import type { AgentRequest } from "../cni/protocol.ts";

/** As the plugin checked it: it becomes the beginning of a file's name. */
const ContainerId = z.string().refine(isName);

/** A file's name that begins with a container's id. */
const RecordId = z.string().regex(/^[a-zA-Z0-9][^/]*$/);

const Netns = z.string().startsWith("/");

const Addresses = z.array(z.string().refine(isAddress));

const Pod = z.object({
  namespace: z.string().min(1),
  name: z.string().min(1),
  uid: z.string().exactOptional(),
});

export const AgentRequestSchema = z.discriminatedUnion("operation", [
  z.object({
    operation: z.literal("add"),
    network: z.string(),
    containerId: ContainerId,
    netns: Netns,
    ifname: z
      .string()
      .max(15)
      .regex(/^[^\s/:]+$/),
    pod: Pod,
    addresses: Addresses,
    annotations: z.record(z.string(), z.string()).exactOptional(),
  }),
  z.object({ operation: z.literal("delete"), records: z.array(RecordId) }),
  z.object({ operation: z.literal("check"), record: RecordId, netns: Netns, addresses: Addresses }),
  z.object({ operation: z.literal("mention"), pod: Pod, keys: z.array(z.string()) }),
]) satisfies z.ZodType<AgentRequest>;
