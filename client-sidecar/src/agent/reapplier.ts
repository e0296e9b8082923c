/** Brings running clients up to date when their Egresses or gateways change. */

import { isDeepStrictEqual } from "node:util";
import { done, type Outcome, WorkQueue, type WorkReport } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { ClientRecord, EgressReference } from "../state/record.ts";
import type { ClientRegistry } from "./client-registry.ts";
import type { EgressView } from "./egress-view.ts";
import type { AgentMetrics } from "./metrics.ts";
import type { RecordPodEvent } from "./pod-events.ts";
import type { PodNetworks } from "./pod-networks.ts";
import { clientConfig, lastKnown, refusedEgresses } from "./pod-plan.ts";
import type { Withdrawals } from "./withdrawals.ts";

export interface ReapplierOptions {
  readonly registry: ClientRegistry;
  readonly view: EgressView;
  readonly networks: PodNetworks;
  readonly withdrawals: Pick<Withdrawals, "scan">;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Pick<AgentMetrics, "reapplied">;
  readonly logger: Logger;
}

/** One client at a time per namespace, several namespaces at once; a client that fails holds up no other. */
export class Reapplier {
  readonly #options: ReapplierOptions;
  readonly #queue: WorkQueue;

  constructor(options: ReapplierOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      concurrency: 4,
      backoff: { baseMs: 100, maxMs: 10_000 },
      onReport: (report) => this.#report(report),
    });
  }

  reapply(containerId: string): void {
    this.#queue.add(containerId);
  }

  reapplyAll(): void {
    for (const { containerId } of this.#options.registry.values()) this.#queue.add(containerId);
  }

  reapplyClientsOf(reference: EgressReference): void {
    for (const { containerId } of this.#options.registry.ofEgress(reference)) this.#queue.add(containerId);
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((containerId) => this.#work(containerId), signal);
  }

  /** Buries clients whose pods are gone, though nobody has said so: a runtime that was reset runs no DEL. */
  async sweep(): Promise<void> {
    const { registry, networks, withdrawals, logger } = this.#options;
    for (const { containerId, netns, pod } of registry.values()) {
      if (await networks.exists(netns)) continue;
      logger.info({ pod, netns }, "network namespace is gone, withdrawing its client");
      registry.bury(containerId);
    }
    withdrawals.scan();
  }

  async #work(containerId: string): Promise<Outcome> {
    const { registry, view, networks, metrics, logger } = this.#options;
    const record = registry.get(containerId);
    if (record === undefined) return done;
    const egresses = record.egresses.map((recorded) => lastKnown(recorded, view));
    const refreshed = { ...record, egresses };
    if (!isDeepStrictEqual(refreshed, record)) registry.update(refreshed);
    const { changed } = await networks.apply(record.netns, clientConfig(refreshed, view));
    metrics.reapplied.inc({ result: changed ? "changed" : "unchanged" });
    if (!changed) return done;
    logger.info({ pod: record.pod }, "brought a client up to date");
    this.#sayWhoIsRefused(refreshed);
    return done;
  }

  #sayWhoIsRefused(record: ClientRecord): void {
    const { view, recordEvent } = this.#options;
    const refused = refusedEgresses(record, view);
    if (refused.length === 0) return;
    const { namespace } = record.pod;
    const message = `pods of namespace ${namespace} may not use ${refused.join(", ")} (allowedNamespaces): what goes there is rejected`;
    recordEvent(record.pod, { type: "Warning", reason: "EgressNotAllowed", message });
  }

  #report({ key, failure }: WorkReport): void {
    if (failure === undefined) return;
    const { registry, metrics, logger } = this.#options;
    const pod = registry.get(key)?.pod;
    // Between the end of a pod and its DEL its namespace may be gone already: nothing to warn of.
    if (pod === undefined) return;
    metrics.reapplied.inc({ result: "error" });
    const { error: err, retryAfterMs } = failure;
    logger.warn({ err, pod, retryAfterMs }, "cannot bring a client up to date, trying again");
  }
}
