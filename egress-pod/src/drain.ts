/** The end of a gateway: it serves on until nobody needs it, or its time is over. */

import { type Clock, pause, systemClock } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";

/** Until then the proxies of all nodes have heard that no new client should come. */
const LEAST_MS = 5_000;
const LOOK_MS = 1_000;

export interface DrainOptions {
  /** Whether anybody may send through this gateway at all. */
  readonly hasClients: () => boolean;
  /** How many of their flows are not over. */
  readonly liveFlows: () => Promise<number>;
  /** Read again and again: it may change meanwhile. In milliseconds. */
  readonly timeoutMs: () => number;
  /** Told each time that flows were counted. */
  readonly onProgress: (progress: DrainProgress) => void;
  readonly logger: Logger;
  readonly clock?: Clock;
}

export interface DrainProgress {
  /** How many are left; undefined where they cannot be counted: there may be any number of them. */
  readonly flows: number | undefined;
  /** Since the start of the drain. */
  readonly elapsedMs: number;
  readonly timeoutMs: number;
}

export interface Drained extends Pick<DrainProgress, "flows" | "elapsedMs"> {
  /** What ended the drain: no client, no flow, or the end of its time. */
  readonly reason: "unused" | "idle" | "timeout";
}

/** Waits until the gateway may end. @returns why it may, and what is left then */
export async function drain(options: DrainOptions): Promise<Drained> {
  const { hasClients, onProgress, clock = systemClock } = options;
  const startedAt = clock.now();
  const elapsed = () => clock.now() - startedAt;
  const never = new AbortController().signal;
  for (;;) {
    if (!hasClients()) return { reason: "unused", flows: 0, elapsedMs: elapsed() };
    const lookedAt = clock.now();
    const flows = await countFlows(options);
    const [elapsedMs, timeoutMs] = [elapsed(), options.timeoutMs()];
    onProgress({ flows, elapsedMs, timeoutMs });
    if (flows === 0 && lookedAt - startedAt >= LEAST_MS) return { reason: "idle", flows, elapsedMs };
    // To list the flows of a busy gateway takes time of its processor, which packets need.
    const restMs = Math.max(LOOK_MS, 10 * (clock.now() - lookedAt));
    const leftMs = Math.max(0, timeoutMs - elapsedMs);
    await pause(Math.min(restMs, leftMs), never, clock);
    if (elapsed() >= options.timeoutMs()) return { reason: "timeout", flows, elapsedMs: elapsed() };
  }
}

async function countFlows({ liveFlows, logger }: DrainOptions): Promise<number | undefined> {
  try {
    return await liveFlows();
  } catch (err) {
    logger.warn({ err }, "cannot count flows");
    return undefined;
  }
}
