/**
 * What the plugin and the node agent say to each other: one JSON object and a newline each way, on a unix socket. The
 * plugin takes only the types from here, because it ships without a schema library.
 */

import { isAddress } from "@egress-nat/addresses";
import { z } from "zod";
import { isName } from "./name.ts";

/** As the plugin checked it: it becomes the beginning of a file's name. */
const ContainerId = z.string().refine(isName);

/** Of a client's record: a file's name that begins with a container's id. */
const RecordId = z.string().regex(/^[a-zA-Z0-9][^/]*$/);

const Netns = z.string().startsWith("/");

/** Canonical ones of the pod, as the result of its ADD has them. */
const Addresses = z.array(z.string().refine(isAddress)).readonly();

const Pod = z.object({
  namespace: z.string().min(1),
  name: z.string().min(1),
  uid: z.string().exactOptional(),
});

const AddRequest = z.object({
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
  annotations: z.record(z.string(), z.string()).readonly().exactOptional(),
});
export type AddRequest = z.infer<typeof AddRequest>;

const CheckRequest = z.object({
  operation: z.literal("check"),
  record: RecordId,
  netns: Netns,
  addresses: Addresses,
});
export type CheckRequest = z.infer<typeof CheckRequest>;

export const AgentRequest = z.discriminatedUnion("operation", [
  AddRequest,
  z.object({ operation: z.literal("delete"), records: z.array(RecordId).readonly() }),
  CheckRequest,
  /** A pod has annotations that look as if they were meant for this product: somebody should hear of it. */
  z.object({ operation: z.literal("mention"), pod: Pod, keys: z.array(z.string()).readonly() }),
]);
export type AgentRequest = z.infer<typeof AgentRequest>;

export type AgentReply =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly code: number;
      readonly message: string;
      readonly details?: string | undefined;
    };
