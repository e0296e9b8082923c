/** One loop for all gateways that clients of this node use. */

import { setImmediate as turnOfEventLoop } from "node:timers/promises";
import { type Clock, pause, systemClock } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import {
  afterBeats,
  afterProbe,
  askedIn,
  type Beat,
  HEARD_OF_NOTHING_BAD,
  type Heard,
  isInDoubt,
  type Pulse,
  probeAgainMs,
  pulsesOf,
} from "./pulse.ts";

/** How often each gateway is asked. */
const BEAT_MS = 200;

/** How long an answer may take. What comes after its round counts in the one in which it comes: a busy gateway lives. */
const ANSWER_MS = 5 * BEAT_MS;

/** Where nobody is heard in a round that took longer, this process, or the node, may have stood still. */
const STALL_MS = 2 * BEAT_MS;

/** In a row. A node that is slower for longer is slow, and has to judge all the same. */
const MOST_STALLS = 5;

/** In which something is learnt: enough misses for a gateway to be suspect. */
const ROUNDS_TO_SETTLE = 3;

/** Each is some processes. Where more tunnels are in doubt it is this node, or the heartbeat, that fails. */
const MOST_PROBES = 16;

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
  /** By address, what has been said since the last round. */
  #said = new Map<string, Beat>();
  /** By each address to which a tunnel was asked, when that ended; infinity: it has not yet. */
  readonly #probedAtMs = new Map<string, number>();
  /** Rounds in a row that took too long, and in which nobody was heard. */
  #stalls = 0;
  #watched: readonly WatchedGateway[] = [];
  /** By address. */
  #pulses = new Map<string, Pulse>();
  /** By Egress and address, the pulses that callers know of. */
  #told = new Map<string, Pulse>();
  readonly #settled = Promise.withResolvers<void>();

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  pulse(address: string): Pulse {
    return this.#pulses.get(address) ?? "unknown";
  }

  /** When each gateway has had the time to become suspect. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#settled.resolve());
    let learnt = 0;
    for (let round = 0; !signal.aborted; round += 1) {
      const startedAt = this.#clock.now();
      if (await this.#round(round)) learnt += 1;
      if (learnt === ROUNDS_TO_SETTLE || this.#watched.length === 0) this.#settled.resolve();
      const rest = BEAT_MS - (this.#clock.now() - startedAt);
      await pause(Math.max(rest, 0), signal, this.#clock);
    }
  }

  /** @returns whether it says anything about gateways */
  async #round(round: number): Promise<boolean> {
    const gateways = this.#options.gateways();
    this.#watched = gateways;
    this.#forgetOthers(gateways);
    const startedAt = this.#clock.now();
    const answers = await this.#ask(gateways, round);
    const isLate = this.#clock.now() - startedAt > STALL_MS;
    const isDeaf = isLate && [...answers.values()].every((answer) => answer === undefined);
    this.#stalls = isDeaf ? this.#stalls + 1 : 0;
    const isLearnt = !isDeaf || this.#stalls > MOST_STALLS;
    if (isLearnt) this.#learn(gateways, answers);
    this.#probeSome();
    this.#tell();
    return isLearnt;
  }

  /** @returns what the gateways say at their addresses, but at those whose turn it is not */
  async #ask(gateways: readonly WatchedGateway[], round: number): Promise<ReadonlyMap<string, Beat>> {
    const asked = new Set(
      gateways.flatMap(({ addresses }) => {
        const isAsked = askedIn(round, addresses.map(this.#of));
        return addresses.filter((_, index) => isAsked[index]);
      }),
    );
    const probing = gateways.filter(({ probesUplink }) => probesUplink);
    const known = new Set(probing.flatMap(({ addresses }) => addresses));
    const beat = async (address: string) => {
      const question = { probesUplink: known.has(address), timeoutMs: ANSWER_MS };
      const answer = await this.#options.beat(address, question);
      if (answer !== undefined) this.#said.set(address, answer);
    };
    await this.#atMostABeat(Promise.all([...asked].map(beat)));
    const said = this.#said;
    this.#said = new Map();
    return new Map([...[...asked].map((address) => [address, undefined] as const), ...said]);
  }

  async #atMostABeat(done: Promise<unknown>): Promise<void> {
    const { promise: isOver, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(BEAT_MS, resolve);
    await Promise.race([done, isOver]);
    cancel();
    // A process that has stood still looks at its clock before it looks at what has come meanwhile.
    await turnOfEventLoop();
  }

  #learn(gateways: readonly WatchedGateway[], answers: ReadonlyMap<string, Beat>): void {
    // Two may share an address: both start from what was heard before the round.
    const learnt = gateways.flatMap(({ addresses }) => {
      const said = addresses.map((each) => (answers.has(each) ? answers.get(each) : "unasked"));
      const after = afterBeats(addresses.map(this.#of), said);
      return addresses.map((address, index) => [address, after[index] ?? HEARD_OF_NOTHING_BAD] as const);
    });
    for (const [address, heard] of learnt) this.#heard.set(address, heard);
  }

  /** Those come first that one more silence decides about, and of the others those that have waited longest. */
  #probeSome(): void {
    const due = this.#watched.flatMap(({ egress, addresses }) =>
      addresses.filter((each) => this.#isDue(each, addresses)).map((address) => [address, egress] as const),
    );
    const underWay = [...this.#probedAtMs.values()].filter((atMs) => atMs === Infinity).length;
    const inTurn = [...new Map(due)].toSorted(
      ([a], [b]) =>
        Number(isInDoubt(this.#of(b))) - Number(isInDoubt(this.#of(a))) ||
        this.#lastProbeMs(a) - this.#lastProbeMs(b) ||
        0,
    );
    for (const [address, egress] of inTurn.slice(0, MOST_PROBES - underWay))
      void this.#probe(egress, address);
  }

  #isDue(address: string, ofGateway: readonly string[]): boolean {
    const others = ofGateway.filter((each) => each !== address);
    const waitMs = probeAgainMs(this.#of(address), others.map(this.#of));
    return waitMs !== undefined && this.#clock.now() - this.#lastProbeMs(address) >= waitMs;
  }

  #lastProbeMs(address: string): number {
    return this.#probedAtMs.get(address) ?? -Infinity;
  }

  async #probe(egress: EgressReference, address: string): Promise<void> {
    this.#probedAtMs.set(address, Infinity);
    const answered = await this.#options.probe(egress, address).catch(() => undefined);
    this.#probedAtMs.set(address, this.#clock.now());
    const before = this.#heard.get(address);
    if (before === undefined) return;
    const heard = afterProbe(before, answered);
    this.#heard.set(address, heard);
    if (isInDoubt(heard)) this.#probeSome();
    this.#tell();
  }

  /** Two Egresses may name one address: it may be another pod's by now. */
  #tell(): void {
    const before = this.#told;
    this.#told = new Map();
    this.#pulses = new Map(
      this.#watched
        .flatMap(({ addresses }) => {
          const pulses = pulsesOf(addresses.map(this.#of));
          return addresses.map((address, index) => [address, pulses[index] ?? "unknown"] as const);
        })
        // What the API names is first, and wins.
        .toReversed(),
    );
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

  readonly #of = (address: string): Heard => this.#heard.get(address) ?? HEARD_OF_NOTHING_BAD;

  #forgetOthers(gateways: readonly WatchedGateway[]): void {
    const named = new Set(gateways.flatMap(({ addresses }) => addresses));
    for (const known of [this.#heard, this.#probedAtMs]) {
      for (const address of known.keys()) if (!named.has(address)) known.delete(address);
    }
  }
}
