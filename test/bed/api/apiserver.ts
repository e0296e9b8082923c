import { inject } from "vitest";

export type ControlPlaneAction =
  | `apiserver/${"kill" | "start" | "pause" | "resume"}`
  | `etcd/${"kill" | "start" | "back-up" | "restore"}`;

/**
 * What a test may do to the apiserver that all `*.api.test.ts` files share. A test that uses it leaves the apiserver
 * running: put `start` or `resume` in a `finally` or an `afterEach`.
 */
export const apiserver = {
  /** Ends it at once, as a crash would. */
  kill: () => act("apiserver/kill"),
  /** Starts it after {@link kill} and waits until it is ready. */
  start: () => act("apiserver/start"),
  /** Stops it in its tracks: connections stay open, nothing answers. */
  pause: () => act("apiserver/pause"),
  resume: () => act("apiserver/resume"),
} as const;

/** What a test may do to the etcd behind it; what was written is there again after the start. */
export const etcd = {
  kill: () => act("etcd/kill"),
  start: () => act("etcd/start"),
  /** Keeps a copy of all that it holds. */
  backUp: () => act("etcd/back-up"),
  /** Gives it what the last {@link etcd.backUp} kept, its revision included; the apiserver has to restart. */
  restore: () => act("etcd/restore"),
} as const;

async function act(action: ControlPlaneAction): Promise<void> {
  const response = await fetch(`${inject("controlPlaneHandle")}/${action}`, { method: "POST" });
  if (!response.ok) throw new Error(`${action}: ${await response.text()}`);
}
