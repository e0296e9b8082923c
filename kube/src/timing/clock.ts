import { abortable } from "./abortable.ts";

/** Time as this workspace sees it; tests bring their own. */
export interface Clock {
  /** Milliseconds on a clock that never jumps. */
  now(): number;
  /** Calls back after a while. @returns what cancels it */
  after(delayMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/**
 * Waits, or ends early when the signal is aborted.
 *
 * @returns false when it was aborted
 */
export function pause(delayMs: number, signal: AbortSignal, clock: Clock = systemClock): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const cancel = clock.after(delayMs, () => resolve(true));
  return abortable(promise, signal)
    .catch(() => false)
    .finally(cancel);
}
