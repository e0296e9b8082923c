/** What this node reports of gateways that do not answer it. */

import { isDeepStrictEqual } from "node:util";
import type { EgressClientSlice, GatewayReport } from "@egress-nat/crds";
import { type Clock, pause, systemClock, time } from "@egress-nat/kube";
import type { ClientRegistry } from "../client/registry.ts";
import type { WatchedGateway } from "../gateways/heartbeats.ts";
import { type Pulse, pulseOfAll } from "../gateways/pulse.ts";
import type { EgressView } from "../gateways/view.ts";
import { egressKey, egressOfKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import { egressOf } from "./keeper.ts";
import { nextStance, type Stance } from "./report.ts";

const LOOK_EVERY_MS = 500;

export interface GatewayReporterOptions {
  /** Those that clients of this node may use. */
  readonly gateways: () => readonly WatchedGateway[];
  readonly pulse: (address: string) => Pulse;
  readonly registry: Pick<ClientRegistry, "ofEgress">;
  readonly view: Pick<EgressView, "egress">;
  /** The slice of an Egress has to say something else. */
  readonly onChange: (egress: EgressReference) => void;
  readonly clock?: Clock;
}

type Stances = ReadonlyMap<string, Stance>;

export class GatewayReporter {
  readonly #options: GatewayReporterOptions;
  readonly #clock: Clock;
  /** By Egress and gateway. */
  readonly #stances = new Map<string, Stances>();

  constructor(options: GatewayReporterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** What the slice of an Egress has to say. */
  reports(reference: EgressReference): readonly GatewayReport[] {
    return reportsOf(this.#stances.get(egressKey(reference)));
  }

  /** What the agent before has reported stands until it proves wrong. */
  load(slices: readonly EgressClientSlice[]): void {
    for (const slice of slices) {
      const stances = (slice.suspects ?? []).map((report) => {
        const pulse: Pulse = report.state === "Down" ? "dead" : "suspect";
        return [report.gateway, { pulse, since: report.since, report }] as const;
      });
      if (stances.length > 0) this.#stances.set(egressKey(egressOf(slice)), new Map(stances));
    }
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    do this.#look();
    while (await pause(LOOK_EVERY_MS, signal, this.#clock));
  }

  #look(): void {
    const gateways = Map.groupBy(this.#options.gateways(), ({ egress }) => egressKey(egress));
    for (const key of new Set([...this.#stances.keys(), ...gateways.keys()])) {
      const before = this.#stances.get(key);
      const reference = egressOfKey(key);
      const after = this.#stancesOf(reference, gateways.get(key) ?? [], before);
      if (after.size > 0) this.#stances.set(key, after);
      else this.#stances.delete(key);
      if (!isDeepStrictEqual(reportsOf(before), reportsOf(after))) this.#options.onChange(reference);
    }
  }

  #stancesOf(
    egress: EgressReference,
    gateways: readonly WatchedGateway[],
    before: Stances | undefined,
  ): Stances {
    const { view, registry, pulse } = this.#options;
    const status = view.egress(egress)?.status;
    const told = new Map(status?.gateways?.map(({ name, state }) => [name, state]));
    const own = registry.ofEgress(egress).length;
    // Of those that take themselves for one of n nodes there are at most n, however clients are spread.
    const nodes = Math.max(1, Math.ceil((status?.clients ?? 0) / own));
    const common = { nodes, time: time(), nowMs: this.#clock.now() };
    return new Map(
      gateways.map(({ name, addresses }) => {
        const pulseOfIt = pulseOfAll(addresses.map(pulse));
        const sight = { ...common, gateway: name, pulse: pulseOfIt, told: told.get(name) };
        return [name, nextStance(before?.get(name), sight, Math.random)];
      }),
    );
  }
}

function reportsOf(stances: Stances = new Map()): readonly GatewayReport[] {
  return [...stances.values()]
    .flatMap(({ report }) => report ?? [])
    .toSorted((a, b) => (a.gateway < b.gateway ? -1 : 1));
}
