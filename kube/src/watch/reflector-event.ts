import { hasCode, KubeError } from "../error.ts";

export type RelistReason = "start" | "expired" | "refused" | "rewound";

/** What happens to a reflector, by name, for metrics and tests. */
export type ReflectorEvent =
  /** It lists: at the start, or because it cannot know what it missed. */
  | { readonly type: "relist"; readonly reason: RelistReason }
  /** The store holds what the list said. */
  | { readonly type: "synced"; readonly objects: number; readonly durationMs: number }
  | { readonly type: "watching"; readonly resourceVersion: string }
  | { readonly type: "bookmark"; readonly resourceVersion: string }
  /** The apiserver ended the watch in good order. */
  | { readonly type: "ended" }
  /**
   * Nothing came, not even a bookmark: the connection may be dead. Or nothing happens, and etcd does not tell its progress
   * (--watch-progress-notify-interval), without which the apiserver has no bookmarks for what does not change.
   */
  | { readonly type: "idle"; readonly error: KubeError }
  /** The connection broke, or the apiserver could not serve. */
  | { readonly type: "disconnected"; readonly error: unknown }
  /** History does not reach back to what was seen last (410 Gone). */
  | { readonly type: "expired"; readonly error: KubeError }
  /** The collection is at an earlier moment than what was seen last: etcd was restored from a backup. */
  | { readonly type: "rewound"; readonly resourceVersion: string }
  /** The apiserver answered, and refuses: missing rights, no such resource. */
  | { readonly type: "refused"; readonly error: KubeError }
  /** An object that could not be parsed; its former version stays in the store. */
  | { readonly type: "invalid"; readonly key: string; readonly error: unknown }
  | { readonly type: "backoff"; readonly delayMs: number; readonly failures: number };

/** An error that ended a list or a watch. */
export type ReflectorFailure = Extract<
  ReflectorEvent,
  { readonly type: "idle" | "disconnected" | "expired" | "refused" }
>;

/** @param isWatching whether the watch was answered before */
export function failureOf(error: unknown, isWatching: boolean): ReflectorFailure {
  if (hasCode(error, "Gone")) return { type: "expired", error };
  if (hasCode(error, "Idle") && isWatching) return { type: "idle", error };
  if (error instanceof KubeError && isRefusal(error)) return { type: "refused", error };
  return { type: "disconnected", error };
}

/** An answer that says no, and not just "later". */
function isRefusal(error: KubeError): boolean {
  return error.status !== undefined && error.status < 500 && error.status !== 429;
}
