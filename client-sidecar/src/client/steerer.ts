/** Leads flows of running clients to other gateways, as soon as there are others. */

import { type Clock, done, type Outcome, systemClock, WorkQueue } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { EgressView } from "../gateways/view.ts";
import { recordId } from "../records/record-id.ts";
import type { Attachment, ClientRecord } from "../records/schema.ts";
import { clientConfig } from "./configuration.ts";
import type { PodNetworks } from "./networks.ts";
import type { Reapplier } from "./reapplier.ts";
import type { ClientRegistry } from "./registry.ts";

/**
 * How long a client that was steered waits for the look at it. Changes come in pairs, such as that of a gateway which is
 * suspect, and dead a second later, or two where the node is busy: the second one is not to wait for a look.
 */
const LOOK_AFTER_MS = 3_000;

/** Each waits for the kernel most of its time: a transaction of nf_tables ends with a grace period. */
const AT_ONCE = 16;

export interface SteererOptions {
  readonly registry: Pick<ClientRegistry, "get" | "isOwner">;
  readonly view: EgressView;
  readonly networks: Pick<PodNetworks, "steer">;
  readonly reapplier: Pick<Reapplier, "reapply" | "expectChanges" | "expectLook">;
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** All clients that a change is for are steered before any of them is brought up to date, which takes longer. */
export class Steerer {
  readonly #options: SteererOptions;
  readonly #clock: Clock;
  readonly #queue = new WorkQueue({ concurrency: AT_ONCE, backoff: { baseMs: 100, maxMs: 10_000 } });
  /** By record, those that are to be brought up to date. */
  readonly #urgent = new Map<string, Attachment>();
  readonly #steered = new Map<string, Attachment>();

  constructor(options: SteererOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Whether no client waits to be steered, or to be looked at after that. */
  get isIdle(): boolean {
    return this.#queue.depth + this.#queue.active + this.#steered.size === 0;
  }

  /** Steers clients of Egresses or gateways that have changed, and has them brought up to date. */
  steer(clients: readonly Attachment[]): void {
    for (const client of clients) {
      this.#options.reapplier.expectLook(client);
      this.#queue.add(recordId(client));
    }
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((id) => this.#work(id), signal);
  }

  async #work(id: string): Promise<Outcome> {
    const record = this.#options.registry.get(id);
    if (record !== undefined) {
      const follows = await this.#follows(record);
      if (!follows) this.#urgent.set(id, record);
      else if (this.#steered.size === 0) this.#clock.after(LOOK_AFTER_MS, () => this.#lookAt(this.#steered));
      if (follows) this.#steered.set(id, record);
    }
    if (this.#queue.depth === 0) this.#lookAt(this.#urgent);
    return done;
  }

  #lookAt(clients: Map<string, Attachment>): void {
    this.#options.reapplier.reapply([...clients.values()]);
    clients.clear();
  }

  /** Whether the client's flows go where they are to go. */
  async #follows(record: ClientRecord): Promise<boolean> {
    const { registry, view, networks, reapplier, logger } = this.#options;
    if (!registry.isOwner(record)) return false;
    try {
      const isChanged = await networks.steer(record.netns, clientConfig(record, view));
      if (isChanged) reapplier.expectChanges(record);
      return isChanged !== undefined;
    } catch (err) {
      reapplier.expectChanges(record);
      logger.debug(
        { err, pod: record.pod },
        "cannot steer a client: what it lacks is seen when it is looked at",
      );
      return false;
    }
  }
}
