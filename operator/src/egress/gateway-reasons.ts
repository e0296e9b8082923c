/** Why gateways are not ready, in their own words where they have any: the operator may not read pods, but it can ask them. */

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
  /** @returns why it is not ready; empty where it answers, and does not say; undefined where it does not answer */
  readonly ask: (address: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Told which Egress's gateways say something else than before. */
  readonly onChange: (key: string) => void;
  readonly clock?: Clock;
}

/** What came of asking one gateway. */
interface Heard {
  readonly reason: string | undefined;
  /** How often in a row it has given none. */
  readonly silences: number;
}

/** In a row: as long as a gateway may take to start on a busy node. */
const LOOKS_TO_BE_SILENT = 6;

/** Of one that does not answer, and of one whose program is ready while another container or the node's kubelet is not. */
const SILENCE =
  "it has given no reason for a minute: look at its pod (kubectl describe pod), and at the pod's node";

/** Asks in its own time, and gives the last answers at once. After a restart all gateways are asked again. */
export class GatewayReasons {
  readonly #options: GatewayReasonsOptions;
  readonly #queue: WorkQueue;
  /** By the Egress's key, then by the pod's name. */
  readonly #heard = new Map<string, ReadonlyMap<string, Heard>>();

  constructor(options: GatewayReasonsOptions) {
    this.#options = options;
    const { clock = systemClock } = options;
    this.#queue = new WorkQueue({ concurrency: CONCURRENCY, backoff: BACKOFF, clock });
  }

  /** Why the gateways of an Egress that are not ready are not, by pod. They are asked again while there are any. */
  of(key: string): ReadonlyMap<string, string> {
    const down = new Set(this.#down(key).map(({ name }) => name));
    if (down.size > 0) this.#queue.addAfter(key, ASK_EVERY_MS);
    return new Map([...this.#reasons(key)].filter(([name]) => down.has(name)));
  }

  /** Asks until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((key, stop) => this.#look(key, stop), signal);
  }

  async #look(key: string, signal: AbortSignal): Promise<Outcome> {
    const { ask, isInside, onChange } = this.#options;
    const down = this.#down(key);
    const reachable = down.slice(0, MAX_ASKED).flatMap(({ name, addresses }) => {
      const address = addresses.find(isInside);
      return address === undefined ? [] : [{ name, address }];
    });
    const answers = await Promise.all(
      reachable.map(async ({ name, address }) => ({ name, answer: await ask(address, signal) })),
    );
    // A question that was broken off says nothing.
    signal.throwIfAborted();
    const [last, before] = [this.#heard.get(key), this.#reasons(key)];
    if (answers.length === 0) this.#heard.delete(key);
    else
      this.#heard.set(
        key,
        new Map(answers.map(({ name, answer }) => [name, heard(answer, last?.get(name))])),
      );
    if (!isDeepStrictEqual(before, this.#reasons(key))) onChange(key);
    return down.length > 0 ? requeueAfter(ASK_EVERY_MS) : done;
  }

  #reasons(key: string): ReadonlyMap<string, string> {
    const heardOf = [...(this.#heard.get(key) ?? [])];
    return new Map(heardOf.flatMap(([name, { reason }]) => (reason === undefined ? [] : [[name, reason]])));
  }

  /** One that is about to end has no reason to be ready. */
  #down(key: string): readonly Endpoint[] {
    return this.#options.gateways(key).filter(({ ready, terminating }) => !ready && !terminating);
  }
}

function heard(answer: string | undefined, last: Heard | undefined): Heard {
  if (answer) return { reason: answer, silences: 0 };
  const silences = (last?.silences ?? 0) + 1;
  if (silences >= LOOKS_TO_BE_SILENT) return { reason: SILENCE, silences };
  return { reason: answer === undefined ? last?.reason : undefined, silences };
}
