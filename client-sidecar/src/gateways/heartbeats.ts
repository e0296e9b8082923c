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

/**
 * What tells gateways apart: their addresses, because names of pods are used again. One of them is enough: the API tells of
 * those of each family apart, and of a sandbox that is gone in one family before the other.
 */
export interface Heartbeating {
  readonly name: string;
  readonly addresses: readonly string[];
  /** Whether it knows of its way out. */
  readonly probesUplink?: boolean;
}

/** A gateway that flows of clients of this node may use. */
export interface WatchedGateway extends Heartbeating {
  readonly egress: EgressReference;
}

export interface HeartbeatsOptions {
  /** Those of now. */
  readonly gateways: () => readonly WatchedGateway[];
  /** Asks the program in a gateway. */
  readonly beat: (gateway: Heartbeating, timeoutMs: number) => Promise<Beat>;
  /** Asks the kernel in a gateway through the tunnel of a client. @returns undefined where no client has one to it */
  readonly probe: (gateway: WatchedGateway) => Promise<boolean | undefined>;
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
  readonly #probing = new Set<string>();
  #watched: readonly WatchedGateway[] = [];
  /** By Egress and address, the pulses that callers know of. */
  #told: ReadonlyMap<string, Pulse> = new Map();
  readonly #settled = Promise.withResolvers<void>();

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  pulse(gateway: Pick<Heartbeating, "addresses">): Pulse {
    return pulseOf(this.#of(gateway));
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
      await this.#round(signal);
      rounds += 1;
      if (rounds === ROUNDS_TO_SETTLE || this.#heard.size === 0) this.#settled.resolve();
      const rest = BEAT_MS - (this.#clock.now() - startedAt);
      await pause(Math.max(rest, 0), signal, this.#clock);
    } while (!signal.aborted);
  }

  async #round(signal: AbortSignal): Promise<void> {
    const gateways = this.#options.gateways();
    this.#watched = gateways;
    this.#forgetOthers(gateways);
    const startedAt = this.#clock.now();
    const answers = await Promise.all(gateways.map((gateway) => this.#beat(gateway)));
    const hasStalled = this.#clock.now() - startedAt > STALL_MS;
    const isDeaf = hasStalled && answers.every((answer) => answer === undefined);
    const learnt = new Set<string>();
    gateways.forEach((gateway, index) => {
      const isLearnt = gateway.addresses.some((address) => learnt.has(address));
      if (!isDeaf && !isLearnt) this.#learn(gateway, (heard) => afterBeat(heard, answers[index]));
      for (const address of gateway.addresses) learnt.add(address);
      if (asksTunnel(this.#of(gateway))) void this.#probe(gateway, signal);
    });
    this.#tell();
  }

  /** One address is enough for one that answers; the node may have lost its way to the gateway in one family only. */
  #beat(gateway: WatchedGateway): Promise<Beat> {
    const { addresses } = gateway;
    const asked = this.#of(gateway).misses === 0 ? addresses.slice(0, 1) : addresses;
    return this.#options.beat({ ...gateway, addresses: asked }, BEAT_MS);
  }

  /** One at a time for each gateway. */
  async #probe(gateway: WatchedGateway, signal: AbortSignal): Promise<void> {
    const { addresses } = gateway;
    if (addresses.some((address) => this.#probing.has(address))) return;
    for (const address of addresses) this.#probing.add(address);
    const answered = await this.#options.probe(gateway).catch(() => undefined);
    const current = this.#watched.find((each) =>
      each.addresses.some((address) => addresses.includes(address)),
    );
    if (current !== undefined) {
      this.#learn(current, (heard) => afterProbe(heard, answered));
      this.#tell();
    }
    if (answered !== false || this.pulse(gateway) === "dead") {
      await pause(PROBE_AGAIN_MS, signal, this.#clock);
    }
    for (const address of addresses) this.#probing.delete(address);
  }

  #learn({ addresses }: WatchedGateway, change: (heard: Heard) => Heard): void {
    const heard = change(this.#of({ addresses }));
    for (const address of addresses) this.#heard.set(address, heard);
  }

  /** Two of them may share what is heard: an address may be another pod's by now. */
  #tell(): void {
    const before = this.#told;
    this.#told = new Map(
      this.#watched.flatMap((gateway) => keysOf(gateway).map((key) => [key, this.pulse(gateway)])),
    );
    for (const gateway of this.#watched) {
      const [was = "unknown"] = keysOf(gateway).flatMap((key) => before.get(key) ?? []);
      const is = this.pulse(gateway);
      if (was === is) continue;
      const { egress, name } = gateway;
      const level = is !== "alive" ? "warn" : was === "unknown" ? "debug" : "info";
      const words = { egress, gateway: name, before: was, after: is };
      this.#options.logger[level](words, "a gateway's pulse has changed");
      this.#options.onChange(egress);
    }
  }

  #of({ addresses }: Pick<Heartbeating, "addresses">): Heard {
    const heard = addresses.flatMap((address) => this.#heard.get(address) ?? []);
    return heard[0] ?? HEARD_OF_NOTHING_BAD;
  }

  #forgetOthers(gateways: readonly Heartbeating[]): void {
    const named = new Set(gateways.flatMap(({ addresses }) => addresses));
    for (const address of this.#heard.keys()) if (!named.has(address)) this.#heard.delete(address);
  }
}

function keysOf({ egress, addresses }: WatchedGateway): string[] {
  return addresses.map((address) => `${egressKey(egress)} ${address}`);
}
