/** What the plugin and the node agent say to each other: one JSON object and a newline each way, on a unix socket. */

import type { Candidate } from "../client/adder.ts";
import type { PodReference } from "../client/pod.ts";

export interface AddRequest extends Candidate {
  readonly operation: "add";
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
