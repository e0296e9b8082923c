/** The operator: what runs, in which order it begins and ends. All that is used of @dot-i/k8s-operator is here. */

import k8sOperator from "@dot-i/k8s-operator";
import { API_GROUP, OPERATOR } from "@egress-nat/crds";
import { Controller, EventRecorder, fencedBy, LeaderElector, type Transport } from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import { type Caches, type CachesOptions, createCaches } from "./caches.ts";
import { PublishedRanges } from "./cluster-ranges/published.ts";
import { type RangesBySource, rangesBySource } from "./cluster-ranges/ranges.ts";
import { clusterRangesReconciler } from "./cluster-ranges/reconcile.ts";
import { type EgressLeadOptions, reconcileEgresses } from "./egress/controller.ts";
import { DefinitionsCheck } from "./installation/definitions.ts";
import type { OperatorMetrics } from "./metrics.ts";
import { orphanReconciler } from "./slices/orphans.ts";
import { CLUSTER_RANGES, type Controllers, watchCaches } from "./watches.ts";

export interface EgressOperatorOptions
  extends CachesOptions,
    Pick<EgressLeadOptions, "settings" | "maxConcurrentRollouts" | "gatewayHealthPort"> {
  /** For the lease alone: it is renewed while everything else hangs. */
  readonly leaseTransport: Transport;
  /** CIDRs that are in the cluster, too; the rest the operator finds out. */
  readonly configuredRanges: readonly string[];
  /** Name of this candidate: its pod's. */
  readonly identity: string;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
}

const COMPONENT = `${API_GROUP}/${OPERATOR}`;

const CONCURRENCY = 8;
const BACKOFF = { baseMs: 250, maxMs: 60_000 };

const { default: Operator } = k8sOperator;

/**
 * Keeps the children and the status of all Egresses, publishes the networks of the cluster, and removes
 * EgressClientSlices that nobody writes any more.
 *
 * The base class frames it: `start` calls `init`, which follows what is watched, and `stop` ends that. How it would watch
 * and write by itself is left (docs/adr/0003-operator-base-class.md).
 */
export class EgressOperator extends Operator {
  readonly #options: EgressOperatorOptions;
  readonly #caches: Caches;
  readonly #ranges: PublishedRanges;
  readonly #controllers: Controllers;
  readonly #definitions: DefinitionsCheck;
  readonly #events: EventRecorder;
  readonly #elector: LeaderElector;
  readonly #stopping = new AbortController();
  /** What runs from start to stop, whoever leads. */
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: EgressOperatorOptions) {
    super(options.logger);
    const { transport, leaseTransport, namespace, identity, logger } = options;
    this.#options = options;
    this.#caches = createCaches(options);
    this.#ranges = new PublishedRanges(this.#caches.clusterRanges);
    this.#controllers = {
      egress: this.#controller("egress"),
      slice: this.#controller("slice"),
      clusterRanges: this.#controller(CLUSTER_RANGES),
    };
    this.#definitions = new DefinitionsCheck(transport, logger);
    this.#events = new EventRecorder({ transport, component: COMPONENT, instance: identity, logger });
    const lease = { transport: leaseTransport, namespace, name: OPERATOR };
    this.#elector = new LeaderElector({ ...lease, identity, logger });
    options.metrics.watch({
      controllers: Object.values(this.#controllers),
      clusterRanges: () => this.#clusterRanges(),
      watches: () => this.#caches.all.states,
      isLeader: () => this.isLeading,
      egresses: () => this.#caches.egresses.store.list(),
    });
  }

  /** Ready with a complete view of an API that is this release's; to lead is not needed, else a rollout would wait for the former leader. */
  ready(): Check {
    const reasons = [
      ...this.#caches.all.unsynced.map((resource) => `${resource} are not listed yet`),
      ...this.#definitions.check.reasons,
    ];
    return { ok: reasons.length === 0, reasons };
  }

  get isLeading(): boolean {
    return this.#elector.isLeader;
  }

  /** Runs until the signal is aborted, and then ends in order: work, lease, events, watches. */
  async run(signal: AbortSignal): Promise<void> {
    await this.start();
    try {
      // Who does not know the cluster, for instance because of a right that it lacks, leaves the lead to those that do.
      await this.#caches.all.whenSynced(signal).catch(() => undefined);
      await this.#elector.run({ onLead: (lead) => this.#lead(lead) }, signal);
      await this.#events.close();
    } finally {
      this.stop();
      await this.#running;
    }
  }

  override stop(): void {
    this.#stopping.abort();
  }

  protected override async init(): Promise<void> {
    const { signal } = this.#stopping;
    watchCaches(this.#controllers, this.#caches);
    this.#running = Promise.all([this.#caches.all.run(signal), this.#definitions.run(signal)]);
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { egress, slice, clusterRanges } = this.#controllers;
    const caches = this.#caches;
    const ranges = this.#ranges;
    const { namespace } = this.#options;
    const transport = fencedBy(() => this.isLeading, this.#options.transport);
    // Nobody has followed what changed since the last lead, and that may have ended in the middle of anything.
    for (const key of caches.egresses.store.keys()) egress.add(key);
    for (const key of caches.slices.store.keys()) slice.add(key);
    clusterRanges.add(CLUSTER_RANGES);
    await Promise.all([
      reconcileEgresses(
        { ...this.#options, controller: egress, caches, ranges, transport, events: this.#events },
        signal,
      ),
      slice.run(orphanReconciler(caches, transport), signal),
      clusterRanges.run(
        clusterRangesReconciler(transport, namespace, () => this.#clusterRanges(), ranges),
        signal,
      ),
    ]);
  }

  #controller(name: string): Controller {
    const { logger, metrics } = this.#options;
    return new Controller({
      ...{ name, concurrency: CONCURRENCY, backoff: BACKOFF, logger },
      onReport: (report) => metrics.count(name, report),
    });
  }

  #clusterRanges(): RangesBySource {
    const { serviceCidrs, nodes, services } = this.#caches;
    return rangesBySource({
      configured: this.#options.configuredRanges,
      serviceCidrs: serviceCidrs.store.list(),
      nodes: nodes.store.list(),
      services: services.store.list(),
    });
  }
}
