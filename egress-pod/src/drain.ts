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
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** Waits until the gateway may end. @returns what it waited for */
export async function drain(options: DrainOptions): Promise<"unused" | "idle" | "timeout"> {
  const { hasClients, liveFlows, timeoutMs, logger, clock = systemClock } = options;
  const startedAt = clock.now();
  const never = new AbortController().signal;
  for (;;) {
    if (!hasClients()) return "unused";
    const lookedAt = clock.now();
    const elapsedMs = lookedAt - startedAt;
    const flows = await liveFlows().catch((err: unknown) => {
      logger.warn({ err }, "cannot count flows");
      // There may be any number of them.
      return Number.POSITIVE_INFINITY;
    });
    if (flows === 0 && elapsedMs >= LEAST_MS) return "idle";
    if (elapsedMs >= timeoutMs()) {
      logger.warn({ flows }, "drain time is over, cutting flows off");
      return "timeout";
    }
    // To list the flows of a busy gateway takes time of its processor, which packets need.
    await pause(Math.max(LOOK_MS, 10 * (clock.now() - lookedAt)), never, clock);
  }
}
