/**
 * Has clients looked at again whose network namespaces somebody else has changed, and brings to the metrics what their
 * guards refuse.
 */

import type { NetnsWatch, Refusals } from "@egress-nat/founat";
import { Backoff, done, type Outcome, pause, requeueAfter, WorkQueue } from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import type { Attachment, ClientRecord } from "../records/schema.ts";
import type { ClientMetrics } from "./metrics.ts";
import type { PodNetworks } from "./networks.ts";
import type { Reapplier } from "./reapplier.ts";
import { RefusalIncreases } from "./refusal-increases.ts";

/** How soon a new client is watched, and how long the watch keeps the network namespace of one that is gone. */
const FOLLOW_MS = 1_000;

/** Changes come in groups; those of the agent itself do as well. */
const SETTLE_MS = 200;

/** Between two looks at one client: whoever changes it without end gets no more of the node than this. */
const LOOK_EVERY_MS = 5_000;

/** Between the looks at two clients: an agent that starts has a hundred to look at, and pods to add. */
const PACE_MS = 50;

/** How long others come first: one that hangs, or endpoints that change without end, must not leave clients unrepaired. */
const GIVE_WAY_MS = 3_000;

const BACKOFF = { baseMs: 1_000, maxMs: 60_000 };

export interface DriftWatchOptions {
  readonly registry: { values(): readonly (Attachment & Pick<ClientRecord, "netns">)[] };
  readonly networks: Pick<PodNetworks, "openWatch">;
  readonly reapplier: Pick<Reapplier, "reapply" | "isIdle">;
  readonly metrics: { readonly refusedPackets: Pick<ClientMetrics["refusedPackets"], "inc"> };
  readonly logger: Logger;
}

/** On the clock of `performance.now()`. */
interface Look {
  readonly lookedAt: number;
  /** Since when a client that was changed gives way. */
  readonly waitingSince?: number;
}

/**
 * Watches the network namespaces of all clients. What was noticed there is looked at soon, but one client after the
 * other, and after what Egresses and gateways ask for, unless that takes seconds.
 */
export class DriftWatch {
  readonly #options: DriftWatchOptions;
  readonly #queue = new WorkQueue({ concurrency: 1, backoff: BACKOFF });
  readonly #backoff = new Backoff(BACKOFF);
  readonly #watched = new Set<string>();
  /** Those that have been complained about. */
  readonly #lost = new Set<string>();
  readonly #looks = new Map<string, Look>();
  /** Clients that are there when it begins count from then on. */
  #increases = new RefusalIncreases([]);
  #endedBy: string | undefined;

  constructor(options: DriftWatchOptions) {
    this.#options = options;
  }

  /** Whether changes are noticed. */
  get check(): Check {
    const reason = `changes in clients' network namespaces are not noticed: ${this.#endedBy}`;
    return this.#endedBy === undefined ? { ok: true, reasons: [] } : { ok: false, reasons: [reason] };
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    this.#increases = new RefusalIncreases(this.#clients());
    await Promise.all([
      this.#queue.run((netns, ended) => this.#look(netns, ended), signal),
      this.#keepWatching(signal),
    ]);
  }

  /** What changed while nobody watched is seen all the same: a watch that begins tells of every namespace. */
  async #keepWatching(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options;
    while (!signal.aborted) {
      const reason = await this.#watchToItsEnd(signal);
      if (signal.aborted) return;
      this.#endedBy = reason;
      logger.error({ reason }, "the watch of clients' network namespaces has ended, starting it again");
      await pause(this.#backoff.next(), signal);
    }
  }

  async #watchToItsEnd(signal: AbortSignal): Promise<string> {
    const watch = this.#options.networks.openWatch({
      onChange: (netns) => this.#queue.addAfter(netns, SETTLE_MS),
      onRefused: (netns, refusals) => this.#count(netns, refusals),
      onLost: (netns, reason) => this.#lose(netns, reason),
    });
    const ended = new AbortController();
    void watch.ended.then(() => ended.abort());
    this.#watched.clear();
    const either = AbortSignal.any([signal, ended.signal]);
    this.#follow(watch);
    while (await pause(FOLLOW_MS, either)) {
      this.#endedBy = undefined;
      this.#backoff.reset();
      this.#follow(watch);
    }
    watch.close();
    return watch.ended;
  }

  /** It is tried again as long as there is a client: its pod may be ending, and is buried soon then. */
  #lose(netns: string, reason: string): void {
    if (!this.#lost.has(netns)) {
      this.#options.logger.warn({ netns, reason }, "a client's network namespace cannot be watched");
    }
    this.#lost.add(netns);
    this.#watched.delete(netns);
  }

  #count(netns: string, refusals: Refusals): void {
    if (!this.#watched.has(netns)) return; // Told before it was forgotten: it is counted already.
    const { refusedPackets } = this.#options.metrics;
    for (const [reason, packets] of Object.entries(this.#increases.next(netns, refusals))) {
      refusedPackets.inc({ reason }, packets);
    }
  }

  #clients(): ReadonlySet<string> {
    return new Set(this.#options.registry.values().map(({ netns }) => netns));
  }

  #follow(watch: NetnsWatch): void {
    const wanted = this.#clients();
    this.#increases.keep(wanted);
    for (const netns of new Set([...this.#watched, ...this.#lost]))
      if (!wanted.has(netns)) watch.forget(netns);
    for (const kept of [this.#watched, this.#lost, this.#looks])
      for (const netns of kept.keys()) if (!wanted.has(netns)) kept.delete(netns);
    for (const netns of wanted) {
      if (this.#watched.has(netns)) continue;
      this.#watched.add(netns);
      watch.watch(netns);
    }
  }

  async #look(netns: string, signal: AbortSignal): Promise<Outcome> {
    const { registry, reapplier } = this.#options;
    const clients = registry.values().filter((record) => record.netns === netns);
    if (clients.length === 0) return done;
    const now = performance.now();
    const { lookedAt = -LOOK_EVERY_MS, waitingSince = now } = this.#looks.get(netns) ?? {};
    const again = lookedAt + LOOK_EVERY_MS - now;
    if (again > 0) return requeueAfter(again);
    if (!reapplier.isIdle && now - waitingSince < GIVE_WAY_MS) {
      this.#looks.set(netns, { lookedAt, waitingSince });
      return requeueAfter(PACE_MS);
    }
    this.#looks.set(netns, { lookedAt: now });
    reapplier.reapply(clients);
    await pause(PACE_MS, signal);
    return done;
  }
}
