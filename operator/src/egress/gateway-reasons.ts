/** Why gateways are not ready, in their own words: the operator may not read pods, but it can ask them. */

import { isDeepStrictEqual } from "node:util";
import {
  type Clock,
  done,
  type Endpoint,
  type Outcome,
  requeueAfter,
  systemClock,
  WorkQueue,
} from "@egress-nat/kube";

/** A gateway that starts is ready sooner, and nobody need know what it waited for. */
const ASK_EVERY_MS = 10_000;

/** Egresses at a time. */
const CONCURRENCY = 4;

/** Of one Egress: where hundreds are not ready, they say the same. */
const MAX_ASKED = 16;

const BACKOFF = { baseMs: ASK_EVERY_MS, maxMs: 60_000 };

export interface GatewayReasonsOptions {
  /** The pods behind the Service of an Egress. */
  readonly gateways: (key: string) => readonly Endpoint[];
  /** Whether an address is in a network that is known to be the cluster's: nobody else is asked anything. */
  readonly isInside: (address: string) => boolean;
  /** @returns why it is not ready; undefined where it does not say */
  readonly ask: (address: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Told which Egress's gateways say something else than before. */
  readonly onChange: (key: string) => void;
  readonly clock?: Clock;
}

/** Asks in its own time, and gives the last answers at once. After a restart all gateways are asked again. */
export class GatewayReasons {
  readonly #options: GatewayReasonsOptions;
  readonly #queue: WorkQueue;
  /** By the Egress's key: reasons by the pod's name. */
  readonly #reasons = new Map<string, ReadonlyMap<string, string>>();

  constructor(options: GatewayReasonsOptions) {
    this.#options = options;
    const { clock = systemClock } = options;
    this.#queue = new WorkQueue({ concurrency: CONCURRENCY, backoff: BACKOFF, clock });
  }

  /** What the gateways of an Egress that are not ready last said, by pod. They are asked again while there are any. */
  of(key: string): ReadonlyMap<string, string> {
    const down = new Set(this.#down(key).map(({ name }) => name));
    if (down.size > 0) this.#queue.addAfter(key, ASK_EVERY_MS);
    return new Map([...(this.#reasons.get(key) ?? [])].filter(([name]) => down.has(name)));
  }

  /** Asks until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((key, stop) => this.#look(key, stop), signal);
  }

  async #look(key: string, signal: AbortSignal): Promise<Outcome> {
    const { ask, isInside, onChange } = this.#options;
    const down = this.#down(key);
    const answers = await Promise.all(
      down.slice(0, MAX_ASKED).map(async ({ name, addresses }) => {
        const address = addresses.find(isInside);
        return [name, address === undefined ? undefined : await ask(address, signal)] as const;
      }),
    );
    const reasons = new Map(
      answers.flatMap(([name, reason]) => (reason === undefined ? [] : [[name, reason]])),
    );
    const before = this.#reasons.get(key);
    if (reasons.size === 0) this.#reasons.delete(key);
    else this.#reasons.set(key, reasons);
    if (!isDeepStrictEqual(before, this.#reasons.get(key))) onChange(key);
    return down.length > 0 ? requeueAfter(ASK_EVERY_MS) : done;
  }

  /** One that is about to end has no reason to be ready. */
  #down(key: string): readonly Endpoint[] {
    return this.#options.gateways(key).filter(({ ready, terminating }) => !ready && !terminating);
  }
}
