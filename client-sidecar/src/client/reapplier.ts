/** Brings running clients up to date: when their Egresses or gateways change, and when somebody else changes them. */

import { isDeepStrictEqual } from "node:util";
import type { ClientConfig, Difference } from "@egress-nat/founat";
import { done, type Outcome, pause, WorkQueue } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { EgressView } from "../gateways/view.ts";
import { recordId } from "../records/record-id.ts";
import type { Attachment, ClientRecord } from "../records/schema.ts";
import { clientConfig, lastKnown, refusedEgresses } from "./configuration.ts";
import type { Lives } from "./lives.ts";
import type { ClientMetrics } from "./metrics.ts";
import type { Look, PodNetworks } from "./networks.ts";
import type { PodReference, RecordPodEvent } from "./pod.ts";
import type { ClientRegistry } from "./registry.ts";
import type { Withdrawals } from "./withdrawals.ts";

/** Differences or routes that an event tells one by one. */
const MAX_TOLD = 5;

/**
 * How long a repair waits before it is told. A runtime takes a pod's network apart before it says so by DEL: the loopback
 * interface goes down first, and the kernel's IPv6 routes to nowhere go with it.
 */
const TELL_AFTER_MS = 5_000;

/** In a row: they take longer than {@link TELL_AFTER_MS}, because a pod that ends fails for a moment as well. */
const FAILURES_TO_TELL_OF = 8;

export interface ReapplierOptions {
  readonly registry: ClientRegistry;
  readonly view: EgressView;
  readonly networks: PodNetworks;
  readonly lives: Lives;
  readonly withdrawals: Pick<Withdrawals, "scan">;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Pick<ClientMetrics, "reapplied" | "driftRepairs">;
  readonly logger: Logger;
}

interface Applied {
  readonly addedAt: string;
  readonly config: ClientConfig;
  readonly localRoutes: readonly string[];
}

/** One client at a time per namespace, several namespaces at once; a client that fails holds up no other. */
export class Reapplier {
  readonly #options: ReapplierOptions;
  readonly #queue: WorkQueue;
  /** By record, what this process has made of its network namespace: what differs later is another's doing. */
  readonly #applied = new Map<string, Applied>();
  /** By record, those that a look has still to follow for, whatever is asked of this. */
  readonly #due = new Set<string>();

  constructor(options: ReapplierOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      concurrency: 4,
      backoff: { baseMs: 100, maxMs: 10_000 },
      onFailure: ({ key, error: err, failures, retryAfterMs }) => {
        const pod = options.registry.get(key)?.pod;
        // Between the end of a pod and its DEL its namespace may be gone already: nothing to warn of.
        if (pod === undefined) return;
        options.metrics.reapplied.inc({ result: "error" });
        options.logger.warn({ err, pod, retryAfterMs }, "cannot bring a client up to date, trying again");
        if (failures === FAILURES_TO_TELL_OF) this.#sayThatItFails(pod, err);
      },
    });
  }

  /** Whether nobody waits or is being worked on. */
  get isIdle(): boolean {
    return this.#queue.depth + this.#queue.active === 0;
  }

  reapply(clients: readonly Attachment[]): void {
    for (const client of clients) this.#queue.add(recordId(client));
  }

  /** What the next look at a client finds is nobody else's doing. */
  expectChanges(client: Attachment): void {
    this.#applied.delete(recordId(client));
  }

  /** Whoever steers a client has it looked at later. */
  expectLook(client: Attachment): void {
    this.#due.add(recordId(client));
  }

  /** Whether the look has still to come. */
  isDue(client: Attachment): boolean {
    return this.#due.has(recordId(client));
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((id) => this.#work(id, signal), signal);
  }

  /** Buries clients whose pods are gone without a DEL: a runtime that was reset runs none. */
  async sweep(): Promise<void> {
    const { registry, networks, lives, withdrawals, logger } = this.#options;
    for (const record of registry.values()) {
      const { netns, pod } = record;
      if (await networks.exists(netns)) continue;
      logger.info({ pod, netns }, "network namespace is gone, withdrawing its client");
      await lives.happened("vanished", record);
    }
    for (const kept of [this.#applied, this.#due])
      for (const id of kept.keys()) if (registry.get(id) === undefined) kept.delete(id);
    networks.keep(new Set(registry.values().map(({ netns }) => netns)));
    withdrawals.scan();
  }

  async #work(id: string, signal: AbortSignal): Promise<Outcome> {
    const { registry, view, metrics, logger } = this.#options;
    const record = registry.get(id);
    if (record === undefined) return done;
    const egresses = record.egresses.map((recorded) => lastKnown(recorded, view));
    const refreshed = { ...record, egresses };
    if (!isDeepStrictEqual(refreshed, record)) registry.update(refreshed);
    if (!registry.isOwner(record)) return done;
    const config = clientConfig(refreshed, view);
    const look = await this.#look(id, record.netns, config);
    // Whoever has steered the client has it looked at again.
    if (look === undefined) return done;
    const { differences, localRoutes } = look;
    const before = this.#applied.get(id);
    const after = { addedAt: record.addedAt, config, localRoutes };
    this.#applied.set(id, after);
    metrics.reapplied.inc({ result: differences.length > 0 ? "changed" : "unchanged" });
    if (differences.length === 0) return done;
    if (before !== undefined && isDeepStrictEqual(after, { ...before, localRoutes })) {
      void pause(TELL_AFTER_MS, signal).then(() => this.#sayWhatDiffered(record, differences, before, after));
      return done;
    }
    logger.info({ pod: record.pod }, "brought a client up to date");
    this.#sayWhoIsRefused(refreshed);
    return done;
  }

  /** One that did not come to its end is due still; so is one that was asked for meanwhile. */
  async #look(id: string, netns: string, config: ClientConfig): Promise<Look | undefined> {
    const wasDue = this.#due.delete(id);
    let look: Look | undefined;
    try {
      look = await this.#options.networks.apply(netns, config);
      return look;
    } finally {
      if (wasDue && look === undefined) this.#due.add(id);
    }
  }

  #sayWhatDiffered(
    record: ClientRecord,
    differences: readonly Difference[],
    before: Applied,
    after: Applied,
  ): void {
    if (!this.#options.registry.holds(record)) return;
    const isFollowed = !isDeepStrictEqual(before.localRoutes, after.localRoutes);
    // What the guard covers follows the pod's own routes: its sets differ by that.
    const repaired = isFollowed ? differences.filter(({ object }) => object !== "set") : differences;
    if (repaired.length > 0) this.#sayWhatWasRepaired(record, repaired);
    const added = after.localRoutes.filter((route) => !before.localRoutes.includes(route));
    if (added.length > 0) this.#sayWhatIsFollowed(record, added);
  }

  #sayWhatIsFollowed({ pod }: ClientRecord, routes: readonly string[]): void {
    const { recordEvent, logger } = this.#options;
    logger.warn({ pod, routes }, "a client has routes of its own that take packets from its gateways");
    const message = `the pod has routes of its own, such as those of a VPN or a second network: packets to ${listed(routes, ", ")} use no gateway of a wide destination`;
    recordEvent(pod, { type: "Warning", reason: "LocalRoutesFollowed", message });
  }

  #sayWhatWasRepaired({ pod }: ClientRecord, differences: readonly Difference[]): void {
    const { recordEvent, metrics, logger } = this.#options;
    for (const { object } of differences) metrics.driftRepairs.inc({ object });
    const words = differences.map(({ text }) => text);
    logger.warn({ pod, differences: words }, "repaired what another program had changed in a client");
    const message = `another program changed the network namespace of the pod, and the agent repaired it: ${listed(words, "; ")}`;
    recordEvent(pod, { type: "Warning", reason: "NetworkRepaired", message });
  }

  #sayWhoIsRefused(record: ClientRecord): void {
    const { view, recordEvent } = this.#options;
    const refused = refusedEgresses(record, view);
    if (refused.length === 0) return;
    const { namespace } = record.pod;
    const message = `pods of namespace ${namespace} may not use ${refused.join(", ")} (allowedNamespaces): packets to its destinations are rejected`;
    recordEvent(record.pod, { type: "Warning", reason: "EgressNotAllowed", message });
  }

  #sayThatItFails(pod: PodReference, err: unknown): void {
    const why = err instanceof Error ? err.message : String(err);
    const message = `the network namespace of the pod cannot be brought up to date, and the agent tries again: ${why}`;
    this.#options.recordEvent(pod, { type: "Warning", reason: "NetworkNotRepaired", message });
  }
}

function listed(words: readonly string[], separator: string): string {
  const others = words.length > MAX_TOLD ? ` and ${words.length - MAX_TOLD} more` : "";
  return `${words.slice(0, MAX_TOLD).join(separator)}${others}`;
}
