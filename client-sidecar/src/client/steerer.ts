/** Leads flows of running clients to other gateways, as soon as there are others. */

import { done, type Outcome, WorkQueue } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { EgressView } from "../gateways/view.ts";
import { recordId } from "../records/record-id.ts";
import type { Attachment } from "../records/schema.ts";
import { clientConfig } from "./configuration.ts";
import type { PodNetworks } from "./networks.ts";
import type { Reapplier } from "./reapplier.ts";
import type { ClientRegistry } from "./registry.ts";

export interface SteererOptions {
  readonly registry: Pick<ClientRegistry, "get" | "owner">;
  readonly view: EgressView;
  readonly networks: Pick<PodNetworks, "steer">;
  readonly reapplier: Pick<Reapplier, "reapply">;
  readonly logger: Logger;
}

/** All clients that a change is for are steered before any of them is brought up to date, which takes longer. */
export class Steerer {
  readonly #options: SteererOptions;
  readonly #queue = new WorkQueue({ concurrency: 4, backoff: { baseMs: 100, maxMs: 10_000 } });
  readonly #steered = new Map<string, Attachment>();

  constructor(options: SteererOptions) {
    this.#options = options;
  }

  /** Steers clients of Egresses or gateways that have changed, and has them brought up to date. */
  steer(clients: readonly Attachment[]): void {
    for (const client of clients) {
      this.#steered.set(recordId(client), client);
      this.#queue.add(recordId(client));
    }
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((id) => this.#work(id), signal);
  }

  async #work(id: string): Promise<Outcome> {
    const { reapplier } = this.#options;
    await this.#steer(id);
    if (this.#queue.depth > 0) return done;
    reapplier.reapply([...this.#steered.values()]);
    this.#steered.clear();
    return done;
  }

  async #steer(id: string): Promise<void> {
    const { registry, view, networks, logger } = this.#options;
    const record = registry.get(id);
    const owner = record && registry.owner(record.netns);
    if (record === undefined || (owner !== undefined && recordId(owner) !== id)) return;
    try {
      await networks.steer(record.netns, clientConfig(record, view));
    } catch (err) {
      logger.debug(
        { err, pod: record.pod },
        "cannot steer a client: what it lacks is seen when it is looked at",
      );
    }
  }
}
