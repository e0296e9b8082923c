import { retryableError } from "../error.ts";
import { type Clock, systemClock } from "../timing/clock.ts";
import type { Transport } from "../transport/transport.ts";

const EXPIRED = "it was not renewed in time";

/**
 * A lead for as long as it lasts: until it is ended, or its time is over without a renewal.
 *
 * It ends by a timer of its own, whatever the requests do that should renew it. Where the process was frozen, what comes
 * first afterwards need not be that timer: {@link Lead.isHeld} looks at the clock.
 */
export class Lead {
  readonly #controller = new AbortController();
  readonly #durationMs: number;
  readonly #clock: Clock;
  #endsAt = 0;
  #cancel: () => void = () => undefined;

  /**
   * @param heldSince when what gave it was begun, by the clock
   * @param durationMs how long it lasts after that, and after each renewal
   */
  constructor(heldSince: number, durationMs: number, clock: Clock = systemClock) {
    this.#durationMs = durationMs;
    this.#clock = clock;
    this.renewed(heldSince);
  }

  /** Aborted when the lead has ended. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isHeld(): boolean {
    if (!this.signal.aborted && this.#clock.now() >= this.#endsAt) this.end(EXPIRED);
    return !this.signal.aborted;
  }

  /** @param at when the renewal was begun, by the clock */
  renewed(at: number): void {
    if (this.signal.aborted) return;
    this.#cancel();
    this.#endsAt = at + this.#durationMs;
    const remainingMs = Math.max(0, this.#endsAt - this.#clock.now());
    this.#cancel = this.#clock.after(remainingMs, () => this.end(EXPIRED));
  }

  /** @param why for logs, as the rest of a sentence */
  end(why: string): void {
    this.#cancel();
    this.#controller.abort(new DOMException(`the lead has ended: ${why}`, "AbortError"));
  }
}

/** A way to the API on which no write is sent once the lead has ended: it fails with KubeError NotLeading. */
export function fencedBy(isLeader: () => boolean, transport: Transport): Transport {
  const beforeSend = () => {
    if (isLeader()) return;
    throw retryableError("NotLeading", "not sent, because the lead under which it was decided has ended");
  };
  return {
    request: (options) => transport.request(options.method === "GET" ? options : { ...options, beforeSend }),
    stream: (options) => transport.stream(options),
    close: () => transport.close(),
  };
}
