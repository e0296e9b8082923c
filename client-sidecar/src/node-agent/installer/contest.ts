/** Two programs that both insist on what a file holds, and how to lose with grace. */

import { type Clock, systemClock } from "@egress-nat/kube";

const WINDOW_MS = 10 * 60_000;

/** A network that is upgraded or restarted writes its configuration once or twice. */
const ENDLESS = 5;

const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 60_000;

/** Counts how often another program takes the plugin out of the node's configuration. */
export class Contest {
  readonly #clock: Clock;
  #rewrites: readonly number[] = [];

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** The plugin has been put back once more. */
  count(): void {
    this.#rewrites = [...this.#recent, this.#clock.now()];
  }

  /** Whether the other program answers each time: more than a few times within minutes. */
  get isEndless(): boolean {
    return this.#recent.length >= ENDLESS;
  }

  /** How long to leave the file to the other program: who insists makes the container runtime read it without end. */
  get pauseMs(): number {
    const beyond = this.#recent.length - ENDLESS;
    return beyond < 0 ? 0 : Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** beyond);
  }

  get #recent(): readonly number[] {
    return this.#rewrites.filter((at) => this.#clock.now() - at < WINDOW_MS);
  }
}
