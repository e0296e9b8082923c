import type { Clock } from "../timing/clock.ts";

/** As the spam filter of client-go: 25 events about an object at once, then one more every five minutes. */
const BURST = 25;
const REFILL_MS = 5 * 60_000;

/** How many new events may still be written about each object: a token bucket per object. */
export class EventBudget {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one event off an object's budget. @returns false if there is none left */
  spend(object: string): boolean {
    const tokens = this.#tokens(object);
    if (tokens < 1) return false;
    this.#buckets.set(object, { tokens: tokens - 1, at: this.#clock.now() });
    return true;
  }

  /** Forgets the objects about which nothing was said for long enough. */
  forgetFull(): void {
    for (const object of this.#buckets.keys()) {
      if (this.#tokens(object) === BURST) this.#buckets.delete(object);
    }
  }

  #tokens(object: string): number {
    const bucket = this.#buckets.get(object);
    if (!bucket) return BURST;
    return Math.min(BURST, bucket.tokens + (this.#clock.now() - bucket.at) / REFILL_MS);
  }
}
