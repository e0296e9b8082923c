/** What the plugin and the node agent say to each other: one JSON object and a newline each way, on a unix socket. */

import type { Annotations } from "./configuration.ts";
import type { PodReference } from "./invocation.ts";

export interface AddRequest {
  readonly operation: "add";
  readonly containerId: string;
  readonly netns: string;
  readonly ifname: string;
  readonly pod: PodReference;
  /** Canonical addresses of the pod. */
  readonly addresses: readonly string[];
  /** Those that concern this product; absent where the runtime does not pass any, so that the agent asks the API. */
  readonly annotations?: Annotations;
}

export interface DeleteRequest {
  readonly operation: "delete";
  readonly containerId: string;
}

export interface CheckRequest {
  readonly operation: "check";
  readonly containerId: string;
}

export type AgentRequest = AddRequest | DeleteRequest | CheckRequest;

export type AgentReply =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: number; readonly message: string; readonly details?: string };
