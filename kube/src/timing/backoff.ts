export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
}

/**
 * Delays that double up to a limit, each drawn from the upper half of its range: programs that failed together, as
 * all agents do when an apiserver dies, must not come back together.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: () => number;
  #failures = 0;

  constructor(options: BackoffOptions, random: () => number = Math.random) {
    this.#options = options;
    this.#random = random;
  }

  /** Failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /**
   * @param atLeastMs what the other side asked for (Retry-After)
   * @returns how long to wait before the next attempt, in milliseconds
   */
  next(atLeastMs = 0): number {
    const { baseMs, maxMs } = this.#options;
    // The exponent is bounded: 2 ** 1024 is Infinity, and Infinity * 0 is NaN.
    const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return atLeastMs + ceiling * (0.5 + this.#random() / 2);
  }

  reset(): void {
    this.#failures = 0;
  }
}
