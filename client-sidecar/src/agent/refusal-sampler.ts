/** Brings to the metrics what clients' guards refuse. */

import { pause } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { ClientRecord } from "../state/record.ts";
import type { AgentMetrics } from "./metrics.ts";
import type { PodNetworks } from "./pod-networks.ts";
import type { Reapplier } from "./reapplier.ts";
import { RefusalIncreases } from "./refusal-increases.ts";

/** Between the looks at two clients: a node with many has each looked at less often, and pays no more for it. */
const PACE_MS = 3_000;

/** Between two looks at one client. */
const LOOK_EVERY_MS = 60_000;

export interface RefusalSamplerOptions {
  readonly registry: { values(): readonly Pick<ClientRecord, "netns">[] };
  readonly networks: Pick<PodNetworks, "refusals">;
  /** What it does comes first. */
  readonly reapplier: Pick<Reapplier, "isIdle">;
  readonly metrics: { readonly refusedPackets: Pick<AgentMetrics["refusedPackets"], "inc"> };
  readonly logger: Logger;
}

/** Looks at one client's guard at a time, and holds up nobody: to read it changes nothing. */
export class RefusalSampler {
  readonly #options: RefusalSamplerOptions;
  /** By network namespace, in the order of their next turns: when it was looked at. */
  readonly #lookedAt = new Map<string, number>();

  constructor(options: RefusalSamplerOptions) {
    this.#options = options;
  }

  /** Runs until the signal is aborted. Clients that are there when it begins count from their first look on. */
  async run(signal: AbortSignal): Promise<void> {
    const increases = new RefusalIncreases(this.#clients());
    while (await pause(PACE_MS, signal)) {
      if (!this.#options.reapplier.isIdle) continue;
      const clients = this.#clients();
      for (const netns of this.#lookedAt.keys()) {
        if (clients.has(netns)) continue;
        this.#lookedAt.delete(netns);
        increases.forget(netns);
      }
      const netns = this.#next(clients);
      if (netns !== undefined) await this.#look(netns, increases);
    }
  }

  #clients(): ReadonlySet<string> {
    return new Set(this.#options.registry.values().map(({ netns }) => netns));
  }

  #next(clients: ReadonlySet<string>): string | undefined {
    for (const netns of clients) if (!this.#lookedAt.has(netns)) return netns;
    const [oldest] = this.#lookedAt;
    return oldest && oldest[1] + LOOK_EVERY_MS <= performance.now() ? oldest[0] : undefined;
  }

  async #look(netns: string, increases: RefusalIncreases): Promise<void> {
    const { networks, metrics, logger } = this.#options;
    this.#lookedAt.delete(netns);
    this.#lookedAt.set(netns, performance.now());
    try {
      const refusals = await networks.refusals(netns);
      if (refusals === undefined) return; // Somebody has taken the guard away, or the client has ended.
      const { rejected, unheard } = increases.next(netns, refusals);
      metrics.refusedPackets.inc({ reason: "rejected" }, rejected);
      metrics.refusedPackets.inc({ reason: "unheard" }, unheard);
    } catch (err) {
      logger.warn({ err, netns }, "cannot read what a client's guard has refused");
    }
  }
}
