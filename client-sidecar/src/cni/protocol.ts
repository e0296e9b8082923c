/** What the plugin and the node agent say to each other: one JSON object and a newline each way, on a unix socket. */

import type { Annotations } from "./configuration.ts";
import type { PodReference } from "./invocation.ts";

export interface AddRequest {
  readonly operation: "add";
  /** `name` of the network configuration. */
  readonly network: string;
  readonly containerId: string;
  readonly netns: string;
  readonly ifname: string;
  readonly pod: PodReference;
  /** Canonical addresses of the pod. */
  readonly addresses: readonly string[];
  /** Those that concern this product; absent where the runtime does not pass any, so that the agent asks the API. */
  readonly annotations?: Annotations;
}

interface DeleteRequest {
  readonly operation: "delete";
  /** Ids of the clients' records. */
  readonly records: readonly string[];
}

export interface CheckRequest {
  readonly operation: "check";
  /** Id of the client's record. */
  readonly record: string;
  readonly netns: string;
  /** Canonical addresses of the pod, as the result of its ADD had them. */
  readonly addresses: readonly string[];
}

/** A pod has annotations that look as if they were meant for this product: somebody should hear of it. */
interface MentionRequest {
  readonly operation: "mention";
  readonly pod: PodReference;
  /** Keys of the annotations. */
  readonly keys: readonly string[];
}

export type AgentRequest = AddRequest | DeleteRequest | CheckRequest | MentionRequest;

export type AgentReply =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: number; readonly message: string; readonly details?: string };
