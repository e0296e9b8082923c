import { setTimeout as sleep } from "node:timers/promises";
import { ToolError } from "./tool-error.ts";

export interface WaitOptions {
  /** What is waited for, as the end of "timed out waiting for ...". */
  readonly what: string;
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  readonly signal?: AbortSignal;
  /** Appended to the message of a timeout, such as the end of a log. */
  readonly explain?: () => Promise<string> | string;
}

/**
 * Calls `condition` until it returns something other than undefined or false.
 *
 * @param condition may throw: the last error becomes the cause of the timeout
 * @returns what the condition returned
 * @throws ToolError `timeout`
 */
export async function waitUntil<T>(
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  options: WaitOptions,
): Promise<T> {
  const deadline = Date.now() + options.timeoutMs;
  for (;;) {
    options.signal?.throwIfAborted();
    let cause: unknown;
    try {
      const result = await condition();
      if (result !== undefined && result !== false) return result;
    } catch (error) {
      cause = error;
    }
    if (Date.now() >= deadline) {
      const explanation = options.explain === undefined ? "" : `\n${await options.explain()}`;
      throw new ToolError(
        "timeout",
        `timed out after ${options.timeoutMs / 1000} s waiting for ${options.what}${explanation}`,
        { retryable: true, cause },
      );
    }
    await sleep(options.intervalMs ?? 100, undefined, { signal: options.signal });
  }
}
