/** One loop for all gateways that clients of this node use. */

import { type Clock, pause, systemClock } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import {
  afterBeat,
  afterProbe,
  asksTunnel,
  type Beat,
  HEARD_OF_NOTHING_BAD,
  type Heard,
  type Pulse,
  pulseOf,
} from "./pulse.ts";

/** How often each gateway is asked, and how long an answer is waited for. */
const BEAT_MS = 200;

/** Where nobody is heard in a round that took longer, this process, or the node, may have stood still. */
const STALL_MS = 2 * BEAT_MS;

/** Before a tunnel is asked again of which nothing is urgent to know. */
const PROBE_AGAIN_MS = 1_000;

/** Enough misses for a gateway to be suspect. */
const ROUNDS_TO_SETTLE = 3;

/** A gateway that flows of clients of this node may use. */
export interface WatchedGateway {
  readonly egress: EgressReference;
  readonly name: string;
  /**
   * They tell gateways apart, because names of pods are used again. Each has a pulse of its own: the node may have lost
   * its way to the gateway in one family only.
   */
  readonly addresses: readonly string[];
  /** Whether it knows of its way out. */
  readonly probesUplink?: boolean;
}

export interface BeatQuestion {
  /** Whether the gateway knows of its way out. */
  readonly probesUplink: boolean;
  readonly timeoutMs: number;
}

export interface HeartbeatsOptions {
  /** Those of now. */
  readonly gateways: () => readonly WatchedGateway[];
  /** Asks the program in a gateway. */
  readonly beat: (address: string, question: BeatQuestion) => Promise<Beat>;
  /** Asks the kernel in a gateway through the tunnel of a client. @returns undefined where no client has one to it */
  readonly probe: (egress: EgressReference, address: string) => Promise<boolean | undefined>;
  /** A gateway of it has another pulse than before. */
  readonly onChange: (egress: EgressReference) => void;
  readonly logger: Logger;
  readonly clock?: Clock;
}

export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  readonly #clock: Clock;
  /** By each address. */
  readonly #heard = new Map<string, Heard>();
  /** Addresses. */
  readonly #probing = new Set<string>();
  #watched: readonly WatchedGateway[] = [];
  /** By Egress and address, the pulses that callers know of. */
  #told = new Map<string, Pulse>();
  readonly #settled = Promise.withResolvers<void>();

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  pulse(address: string): Pulse {
    return pulseOf(this.#of(address));
  }

  /** When each gateway has had the time to become suspect. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#settled.resolve());
    let rounds = 0;
    do {
      const startedAt = this.#clock.now();
      await this.#round(signal, rounds);
      rounds += 1;
      if (rounds === ROUNDS_TO_SETTLE || this.#heard.size === 0) this.#settled.resolve();
      const rest = BEAT_MS - (this.#clock.now() - startedAt);
      await pause(Math.max(rest, 0), signal, this.#clock);
    } while (!signal.aborted);
  }

  async #round(signal: AbortSignal, rounds: number): Promise<void> {
    const gateways = this.#options.gateways();
    this.#watched = gateways;
    this.#forgetOthers(gateways);
    const startedAt = this.#clock.now();
    const answers = await this.#ask(gateways, rounds);
    const hasStalled = this.#clock.now() - startedAt > STALL_MS;
    const isDeaf = hasStalled && [...answers.values()].every((answer) => answer === undefined);
    if (!isDeaf) {
      for (const [address, answer] of answers) this.#learn(address, (heard) => afterBeat(heard, answer));
    }
    for (const { egress, addresses } of gateways) {
      for (const address of addresses) {
        if (asksTunnel(this.#of(address))) void this.#probe(egress, address, signal);
      }
    }
    this.#tell();
  }

  /** @returns what each address of the gateways says, that of another one of the same gateway where it was not asked itself */
  async #ask(gateways: readonly WatchedGateway[], rounds: number): Promise<ReadonlyMap<string, Beat>> {
    const asked = new Map(
      gateways.flatMap((gateway) =>
        this.#toAsk(gateway.addresses, rounds).map((address) => [address, gateway] as const),
      ),
    );
    const answers = new Map(
      await Promise.all(
        [...asked].map(async ([address, { probesUplink = false }]) => {
          const answer = await this.#options.beat(address, { probesUplink, timeoutMs: BEAT_MS });
          return [address, answer] as const;
        }),
      ),
    );
    for (const { addresses } of gateways) {
      const spokesman = addresses.find((address) => asked.has(address)) ?? "";
      for (const address of addresses) {
        if (!answers.has(address)) answers.set(address, answers.get(spokesman));
      }
    }
    return answers;
  }

  /** They take turns while all answer. */
  #toAsk(addresses: readonly string[], rounds: number): readonly string[] {
    const heard = addresses.map((address) => this.#of(address));
    if (heard.some(({ answer, misses }) => answer === undefined || misses > 0)) return addresses;
    const turn = rounds % addresses.length;
    return addresses.slice(turn, turn + 1);
  }

  /** One at a time for each address. */
  async #probe(egress: EgressReference, address: string, signal: AbortSignal): Promise<void> {
    if (this.#probing.has(address)) return;
    this.#probing.add(address);
    const answered = await this.#options.probe(egress, address).catch(() => undefined);
    if (this.#heard.has(address)) {
      this.#learn(address, (heard) => afterProbe(heard, answered));
      this.#tell();
    }
    if (answered !== false || this.pulse(address) === "dead") {
      await pause(PROBE_AGAIN_MS, signal, this.#clock);
    }
    this.#probing.delete(address);
  }

  #learn(address: string, change: (heard: Heard) => Heard): void {
    this.#heard.set(address, change(this.#of(address)));
  }

  /** Two Egresses may name one address: it may be another pod's by now. */
  #tell(): void {
    const before = this.#told;
    this.#told = new Map();
    const changed = new Map<string, EgressReference>();
    for (const { egress, name, addresses } of this.#watched) {
      for (const address of addresses) {
        const key = `${egressKey(egress)} ${address}`;
        const [was, is] = [before.get(key) ?? "unknown", this.pulse(address)];
        this.#told.set(key, is);
        if (was === is) continue;
        const level = is !== "alive" ? "warn" : was === "unknown" ? "debug" : "info";
        const words = { egress, gateway: name, address, before: was, after: is };
        this.#options.logger[level](words, "a gateway's pulse has changed");
        changed.set(egressKey(egress), egress);
      }
    }
    for (const egress of changed.values()) this.#options.onChange(egress);
  }

  #of(address: string): Heard {
    return this.#heard.get(address) ?? HEARD_OF_NOTHING_BAD;
  }

  #forgetOthers(gateways: readonly WatchedGateway[]): void {
    const named = new Set(gateways.flatMap(({ addresses }) => addresses));
    for (const address of this.#heard.keys()) if (!named.has(address)) this.#heard.delete(address);
  }
}
