import { inject } from "vitest";

export type ApiserverAction = "kill" | "start" | "pause" | "resume";

/**
 * What a test may do to the apiserver that all `*.api.test.ts` files share. A test that uses it leaves the apiserver
 * running: put `start` or `resume` in a `finally` or an `afterEach`.
 */
export const apiserver = {
  /** Ends it at once, as a crash would. */
  kill: () => act("kill"),
  /** Starts it after {@link kill} and waits until it is ready. */
  start: () => act("start"),
  /** Stops it in its tracks: connections stay open, nothing answers. */
  pause: () => act("pause"),
  resume: () => act("resume"),
} as const;

async function act(action: ApiserverAction): Promise<void> {
  const response = await fetch(`${inject("apiserverHandle")}/${action}`, { method: "POST" });
  if (!response.ok) throw new Error(`cannot ${action} the apiserver: ${await response.text()}`);
}
