/** Network namespaces that outlive their clients, as those of nerdctl, podman and cnitool do. */

import { done, type Outcome, requeueAfter, WorkQueue } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { ClientRecord } from "../records/schema.ts";
import type { PodNetworks } from "./networks.ts";
import type { ClientRegistry } from "./registry.ts";

/** The runtime goes on to the plugins before this one, which take the interface away; most remove the namespace then. */
const PAUSE_MS = 1_000;

/** Whoever keeps namespace and interface for longer after a DEL keeps the client's guard in it as well. */
const PATIENCE_MS = 60_000;

interface Leftover {
  readonly uplink: string;
  /** On the clock of `performance.now()`. */
  readonly until: number;
}

export interface LeftoversOptions {
  readonly registry: Pick<ClientRegistry, "owner">;
  readonly networks: Pick<PodNetworks, "exists" | "remove">;
  readonly logger: Logger;
}

/**
 * Undoes what ADD did where the network namespace is still there after DEL. Not in DEL itself: until the interface is
 * gone a program that has not ended yet would have a way around the gateways, and most namespaces go by themselves.
 */
export class Leftovers {
  readonly #options: LeftoversOptions;
  readonly #queue: WorkQueue;
  readonly #left = new Map<string, Leftover>();

  constructor(options: LeftoversOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      concurrency: 2,
      backoff: { baseMs: PAUSE_MS, maxMs: PATIENCE_MS },
      onFailure: ({ key, error: err }) =>
        options.logger.warn({ netns: key, err }, "cannot clean a network namespace"),
    });
  }

  /** @param client that has just been deleted */
  add({ netns, ifname }: Pick<ClientRecord, "netns" | "ifname">): void {
    this.#left.set(netns, { uplink: ifname, until: performance.now() + PATIENCE_MS });
    this.#queue.addAfter(netns, PAUSE_MS);
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((netns) => this.#work(netns), signal);
  }

  async #work(netns: string): Promise<Outcome> {
    const { networks, registry } = this.#options;
    const left = this.#left.get(netns);
    if (left === undefined) return done;
    const isFree = () => registry.owner(netns) === undefined;
    const isOver =
      performance.now() > left.until ||
      !(await networks.exists(netns)) ||
      (await networks.remove(netns, isFree, left.uplink));
    if (!isOver) return requeueAfter(PAUSE_MS);
    this.#left.delete(netns);
    return done;
  }
}
