/** The operator: watches, queues and leadership around the reconcilers. */

import { randomUUID } from "node:crypto";
import k8sOperator, { type ResourceEvent, type ResourceMeta } from "@dot-i/k8s-operator";
import { EGRESS_RESOURCE, Egress, type EgressStatus, egressKeys, orInvalid } from "@egress-nat/crds";
import {
  apiVersion,
  type Change,
  EventRecorder,
  fencedBy,
  type KubeObject,
  LeaderElector,
  objectKey,
  type ReflectorState,
  type Resource,
  ResourceClient,
  type Transport,
  WorkQueue,
  type WorkReport,
} from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import { clusterRangesWorld, egressWorld, sliceWorld } from "./api.ts";
import { Caches, type Watch, type Watched } from "./caches.ts";
import { type RangesBySource, rangesBySource } from "./cluster-ranges/ranges.ts";
import { reconcileClusterRanges } from "./cluster-ranges/reconcile.ts";
import type { GatewaySettings } from "./egress/children/index.ts";
import { FIELD_MANAGER } from "./egress/field-manager.ts";
import { GatewayReasons } from "./egress/gateway-reasons.ts";
import { LastingFailures } from "./egress/lasting-failures.ts";
import { concerns } from "./egress/namespaces.ts";
import { askWhyNotReady } from "./egress/readiness-question.ts";
import { type EgressWorld, reconcileEgress } from "./egress/reconcile.ts";
import type { StoredEgress } from "./egress/status.ts";
import { UpgradeTurns } from "./egress/upgrade-turns.ts";
import { DefinitionsCheck } from "./installation/definitions.ts";
import type { OperatorMetrics } from "./metrics.ts";
import { reconcileSlice } from "./slices/orphans.ts";

export interface EgressOperatorOptions {
  readonly transport: Transport;
  /** For the lease alone: it is renewed while everything else hangs. */
  readonly leaseTransport: Transport;
  readonly settings: GatewaySettings;
  /** Of how many Egresses gateways are replaced at a time where the operator itself is the reason. */
  readonly maxConcurrentRollouts: number;
  /** What there is of the cluster's networks. */
  readonly clusterNetworks: ClusterNetworks;
  /** The product's: of the operator's Lease, and of what it publishes. */
  readonly namespace: string;
  /** Name of this candidate: its pod's. */
  readonly identity: string;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
  /** TCP port at which gateways say why they are not ready, where it is not the usual one. */
  readonly gatewayHealthPort?: number;
}

/** What the operator is told of the cluster's networks; the rest it finds out. */
export interface ClusterNetworks {
  /** CIDRs. */
  readonly configured: readonly string[];
  /** Whether external IPs and load balancers' addresses of Services are in the cluster, too. */
  readonly serviceAddresses: boolean;
}

const LEASE = "egress-nat-operator";
const COMPONENT = "coil.cybozu.com/egress-nat-operator";

const CONCURRENCY = 8;
/** An agent may outlive its node for a while, and write a slice again that was removed with the node. */
const ORPHAN_AFTER_MS = 30_000;

/** Pods come in crowds, and each status that is written is read by many. */
const CLIENTS_AFTER_MS = 1000;

/** What the operator writes comes back from several watches: one look at all of it is enough. */
const CHILDREN_AFTER_MS = 100;

/** Nodes come in crowds as well, and what is published is read by all of them. */
const CLUSTER_RANGES_AFTER_MS = 500;
/** The one piece of work of its kind. */
const CLUSTER_RANGES = "cluster-ranges";

const BACKOFF = { baseMs: 250, maxMs: 60_000 };

const { default: Operator, ResourceEventType } = k8sOperator;

const EVENT_TYPES = {
  added: ResourceEventType.Added,
  updated: ResourceEventType.Modified,
  deleted: ResourceEventType.Deleted,
} as const;

/**
 * Keeps the children and the status of all Egresses, and removes EgressClientSlices of nodes that are gone.
 *
 * The base class gives its shape: init, watches with events, start and stop. How it watches and writes is overridden,
 * for its watch never lists and ends the process on an error (docs/adr/0003-operator-base-class.md). What an event says
 * is not looked at: it only tells which object to look at, in the stores.
 */
export class EgressOperator extends Operator {
  readonly #options: EgressOperatorOptions;
  readonly #caches: Caches;
  readonly #definitions: DefinitionsCheck;
  readonly #events: EventRecorder;
  readonly #elector: LeaderElector;
  readonly #egressQueue: WorkQueue;
  readonly #sliceQueue: WorkQueue;
  readonly #clusterRangesQueue: WorkQueue;
  readonly #watches = new Map<string, Watch>();
  readonly #watching: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  /** For the work of a lead. */
  readonly #fenced: Transport;
  readonly #egresses: ResourceClient<StoredEgress>;

  constructor(options: EgressOperatorOptions) {
    super(options.logger);
    const { transport, leaseTransport, namespace, identity, logger, metrics } = options;
    this.#options = options;
    this.#caches = new Caches(namespace);
    this.#definitions = new DefinitionsCheck(transport, logger);
    this.#events = new EventRecorder({ transport, component: COMPONENT, instance: identity, logger });
    this.#elector = new LeaderElector({
      transport: leaseTransport,
      ...{ namespace, name: LEASE },
      ...{ identity, logger },
    });
    this.#fenced = fencedBy(this.#elector, transport);
    this.#egresses = new ResourceClient(this.#fenced, EGRESS_RESOURCE, orInvalid(Egress));
    this.#egressQueue = this.#queue("egress");
    this.#sliceQueue = this.#queue("slice");
    this.#clusterRangesQueue = this.#queue(CLUSTER_RANGES);
    metrics.watch({
      queues: {
        egress: this.#egressQueue,
        slice: this.#sliceQueue,
        [CLUSTER_RANGES]: this.#clusterRangesQueue,
      },
      clusterRanges: () => this.#clusterRanges(),
      watches: () => this.#watchStates(),
      isLeader: () => this.isLeading,
      invalidEgresses: () => this.#caches.invalidEgresses(),
      egresses: () => this.#caches.egresses.store.list(),
    });
  }

  /** Ready with a complete view of an API that is this release's; to lead is not needed, else a rollout would wait for the former leader. */
  ready(): Check {
    const missing = Object.entries(this.#watchStates()).filter(([, { synced }]) => !synced);
    const reasons = [
      ...missing.map(([resource]) => `${resource} are not listed yet`),
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
    this.#watching.push(this.#definitions.run(this.#stopping.signal));
    try {
      await this.#elector.run({ onLead: (lead) => this.#lead(lead) }, signal);
      await this.#events.close();
    } finally {
      this.stop();
      await Promise.all(this.#watching);
    }
  }

  override stop(): void {
    this.#stopping.abort();
  }

  protected override async init(): Promise<void> {
    const { egresses, slices, nodes, namespaces, endpointSlices, children } = this.#caches;
    const { serviceCidrs, services, clusterRanges } = this.#caches;
    for (const watched of [egresses, ...Object.values(children)]) {
      await this.#watch(watched, ({ meta }) =>
        this.#egressQueue.addAfter(objectKey({ metadata: meta }), CHILDREN_AFTER_MS),
      );
    }
    egresses.store.onChange(({ type, key, object, previous }) => {
      // What an author wants is begun at once; a status is the operator's own.
      if (object.metadata.generation !== previous?.metadata.generation) this.#egressQueue.add(key);
      if (type !== "added") return;
      // Some may be of a former Egress of that name.
      for (const slice of this.#caches.slicesOfEgress(key)) this.#sliceQueue.add(objectKey(slice));
    });
    await this.#watch(slices, ({ meta, object }) => {
      this.#sliceQueue.addAfter(objectKey({ metadata: meta }), ORPHAN_AFTER_MS);
      for (const key of egressKeys(object)) this.#egressQueue.addAfter(key, CLIENTS_AFTER_MS);
    });
    await this.#watch(endpointSlices, ({ object }) => {
      for (const key of egressKeys(object)) this.#egressQueue.add(key);
    });
    const inspectRanges = () => this.#clusterRangesQueue.addAfter(CLUSTER_RANGES, CLUSTER_RANGES_AFTER_MS);
    await this.#watch(serviceCidrs, inspectRanges);
    if (this.#options.clusterNetworks.serviceAddresses)
      this.#follow("serviceAddresses", services, inspectRanges);
    await this.#watch(clusterRanges, () => {
      inspectRanges();
      // Some gateways may be outside.
      for (const key of egresses.store.keys()) this.#egressQueue.add(key);
    });
    await this.#watch(nodes, ({ meta, type }) => {
      inspectRanges();
      if (type !== ResourceEventType.Deleted) return;
      for (const slice of this.#caches.slicesOfNode(meta.name)) this.#sliceQueue.add(objectKey(slice));
    });
    await this.#watch(namespaces, ({ meta }) => {
      const labels = namespaces.store.get(meta.name)?.metadata.labels;
      for (const egress of egresses.store.list()) {
        if (concerns(egress, { name: meta.name, labels })) this.#egressQueue.add(objectKey(egress));
      }
    });
  }

  /** As in the base class, but by list and watch, for as long as the operator runs. */
  protected override async watchResource(
    group: string,
    version: string,
    plural: string,
    onEvent: (event: ResourceEvent) => Promise<void>,
    namespace?: string,
  ): Promise<void> {
    const watched = this.#caches
      .all()
      .find(
        ({ resource }) =>
          resource.group === group && resource.version === version && resource.plural === plural,
      );
    if (watched === undefined) throw new TypeError(`there is no cache of ${plural}: add one to caches.ts`);
    this.#follow(plural, watched, (event) => void onEvent(event), namespace);
  }

  /**
   * As in the base class, but by server-side apply, errors are thrown, and it can be aborted. Only the version of the
   * Egress that `meta` names is written: who has seen less than another must not have the last word.
   */
  protected override async setResourceStatus(
    meta: ResourceMeta,
    status: EgressStatus,
    signal?: AbortSignal,
  ): Promise<ResourceMeta> {
    const { name, namespace, resourceVersion } = meta;
    const written = await this.#egresses.applyStatus(
      { metadata: { name, namespace, resourceVersion }, status },
      { fieldManager: FIELD_MANAGER, force: true, signal },
    );
    // It is the very next version. Until the watch tells of it, each status would be a conflict.
    const { store } = this.#caches.egresses;
    if (store.get(objectKey(written))?.metadata.resourceVersion === resourceVersion) store.put(written);
    return resourceMeta(EGRESS_RESOURCE, written);
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { settings, namespace, logger, gatewayHealthPort, maxConcurrentRollouts } = this.#options;
    const transport = this.#fenced;
    const synced = [...this.#watches.values()].map((watch) => watch.whenSynced(signal));
    const isSynced = await Promise.all(synced).then(
      () => true,
      () => false,
    );
    // The only reason not to be: the lead ended before.
    if (!isSynced) return;
    // A former lead may have ended in the middle of anything.
    for (const key of this.#caches.egresses.store.keys()) this.#egressQueue.add(key);
    for (const key of this.#caches.slices.store.keys()) this.#sliceQueue.add(key);
    this.#clusterRangesQueue.add(CLUSTER_RANGES);

    const { deployment } = this.#caches.children;
    const upgradeTurns = new UpgradeTurns({
      limit: maxConcurrentRollouts,
      deployment: (key) => deployment.store.get(key),
      deployments: () => this.#caches.deploymentsToUpgrade(),
      wake: (key) => this.#egressQueue.add(key),
    });
    const unfollow = deployment.store.onChange(({ key }) => upgradeTurns.seen(key));
    signal.addEventListener("abort", unfollow, { once: true });
    const gatewayReasons = new GatewayReasons({
      gateways: (key) => this.#caches.gatewaysOf(key),
      isInside: (address) => this.#caches.isInside(address),
      ask: (address, stop) => askWhyNotReady(address, stop, gatewayHealthPort),
      onChange: (key) => this.#egressQueue.add(key),
    });
    const writeStatus: EgressWorld["writeStatus"] = async (egress, status, stop) => {
      await this.setResourceStatus(resourceMeta(EGRESS_RESOURCE, egress), status, stop);
    };
    const egresses = egressWorld(
      transport,
      this.#caches,
      {
        gatewayReasons: (key) => gatewayReasons.of(key),
        ...{ lastingFailures: new LastingFailures(), upgradeTurns, writeStatus },
      },
      this.#events,
    );
    const slices = sliceWorld(transport, this.#caches);
    const ranges = clusterRangesWorld(transport, namespace, this.#caches, () => this.#clusterRanges());
    await Promise.all([
      gatewayReasons.run(signal),
      this.#egressQueue.run(
        (key, stop) => reconcileEgress(key, egresses, settings, oneReconcile(logger, { egress: key }), stop),
        signal,
      ),
      this.#sliceQueue.run(
        (key, stop) => reconcileSlice(key, slices, oneReconcile(logger, { slice: key }), stop),
        signal,
      ),
      this.#clusterRangesQueue.run(
        (_, stop) => reconcileClusterRanges(ranges, oneReconcile(logger, {}), stop),
        signal,
      ),
    ]);
  }

  /** @param name of the watch: what is watched */
  #follow(name: string, watched: Watched, onEvent: (event: ResourceEvent) => void, namespace?: string): void {
    const { transport, logger } = this.#options;
    const watch = watched.reflector({ transport, logger, namespace });
    watched.onChange((change) => onEvent(resourceEvent(watched.resource, change)));
    this.#watches.set(name, watch);
    this.#watching.push(watch.run(this.#stopping.signal));
  }

  #watch({ resource }: Watched, onEvent: (event: ResourceEvent) => void): Promise<void> {
    return this.watchResource(resource.group, resource.version, resource.plural, async (event) =>
      onEvent(event),
    );
  }

  #queue(controller: string): WorkQueue {
    const { logger, metrics } = this.#options;
    const onReport = (report: WorkReport) => {
      metrics.count(controller, report);
      const { key, failure } = report;
      if (failure === undefined) return;
      const { error, failures, retryAfterMs } = failure;
      logger.warn(
        { [controller]: key, err: error, failures, retryAfterMs },
        "reconcile failed, trying again",
      );
    };
    return new WorkQueue({ concurrency: CONCURRENCY, backoff: BACKOFF, onReport });
  }

  #clusterRanges(): RangesBySource {
    const { serviceCidrs, nodes, services } = this.#caches;
    return rangesBySource({
      configured: this.#options.clusterNetworks.configured,
      serviceCidrs: serviceCidrs.store.list(),
      nodes: nodes.store.list(),
      services: services.store.list(),
    });
  }

  #watchStates(): Readonly<Record<string, ReflectorState>> {
    return Object.fromEntries([...this.#watches].map(([plural, { state }]) => [plural, state]));
  }
}

function resourceEvent(
  resource: Resource,
  { type, object }: Pick<Change<KubeObject>, "type" | "object">,
): ResourceEvent {
  // The library's type has a Date where the API's JSON has a string; nobody reads it.
  const untyped = object as unknown as ResourceEvent["object"];
  return { meta: resourceMeta(resource, object), type: EVENT_TYPES[type], object: untyped };
}

function resourceMeta(resource: Resource, { metadata }: KubeObject): ResourceMeta {
  const { name, namespace, resourceVersion = "" } = metadata;
  return {
    id: `${resource.plural}.${apiVersion(resource)}`,
    name,
    ...(namespace !== undefined && { namespace }),
    resourceVersion,
    apiVersion: apiVersion(resource),
    kind: resource.kind,
  };
}

/** All lines of one reconcile have one id. */
function oneReconcile(logger: Logger, object: Readonly<Record<string, string>>): Logger {
  return logger.child({ ...object, reconcileId: randomUUID() });
}
