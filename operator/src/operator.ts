/** The operator: watches, queues and leadership around the reconcilers. */

import { randomUUID } from "node:crypto";
import k8sOperator, { type ResourceEvent, type ResourceMeta } from "@dot-i/k8s-operator";
import { EGRESS_RESOURCE, Egress, type EgressStatus } from "@egress-nat/crds";
import {
  apiVersion,
  type Change,
  EventRecorder,
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
import { egressWorld, sliceWorld } from "./api.ts";
import { Caches, egressKeys, type Watch, type Watched } from "./caches.ts";
import type { GatewaySettings } from "./egress/children/index.ts";
import { FIELD_MANAGER } from "./egress/field-manager.ts";
import { concerns } from "./egress/namespaces.ts";
import { reconcileEgress } from "./egress/reconcile.ts";
import type { OperatorMetrics } from "./metrics.ts";
import { reconcileSlice } from "./slices/orphans.ts";

export interface EgressOperatorOptions {
  readonly transport: Transport;
  readonly settings: GatewaySettings;
  /** Namespace of the operator's Lease. */
  readonly namespace: string;
  /** Name of this candidate: its pod's. */
  readonly identity: string;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
}

const LEASE = "egress-nat-operator";
const COMPONENT = "coil.cybozu.com/egress-nat-operator";

const CONCURRENCY = 8;
/** An agent may outlive its node for a while, and write a slice again that was removed with the node. */
const ORPHAN_AFTER_MS = 30_000;

/** Pods come in crowds, and each status that is written is read by many. */
const CLIENTS_AFTER_MS = 1000;

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
  readonly #caches = new Caches();
  readonly #events: EventRecorder;
  readonly #elector: LeaderElector;
  readonly #egressQueue: WorkQueue;
  readonly #sliceQueue: WorkQueue;
  readonly #watches = new Map<string, Watch>();
  readonly #watching: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  readonly #egresses: ResourceClient<Egress>;

  constructor(options: EgressOperatorOptions) {
    super(options.logger);
    const { transport, namespace, identity, logger, metrics } = options;
    this.#options = options;
    this.#egresses = new ResourceClient(transport, EGRESS_RESOURCE, (raw) => Egress.parse(raw));
    this.#events = new EventRecorder({ transport, component: COMPONENT, instance: identity, logger });
    this.#elector = new LeaderElector({ transport, namespace, name: LEASE, identity, logger });
    this.#egressQueue = this.#queue("egress");
    this.#sliceQueue = this.#queue("slice");
    metrics.watch({
      queues: { egress: this.#egressQueue, slice: this.#sliceQueue },
      watches: () => this.#watchStates(),
      isLeader: () => this.#elector.isLeader,
    });
  }

  /** Ready with a complete view of the API; to lead is not needed, else a rollout would wait for the former leader. */
  ready(): Check {
    const missing = Object.entries(this.#watchStates()).filter(([, { synced }]) => !synced);
    return {
      ok: missing.length === 0,
      reasons: missing.map(([resource]) => `${resource} are not listed yet`),
    };
  }

  /** Runs until the signal is aborted, and then ends in order: work, lease, events, watches. */
  async run(signal: AbortSignal): Promise<void> {
    await this.start();
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
    for (const watched of [egresses, ...Object.values(children)]) {
      await this.#watch(watched, ({ meta }) => this.#egressQueue.add(objectKey({ metadata: meta })));
    }
    await this.#watch(slices, ({ meta, object }) => {
      this.#sliceQueue.addAfter(objectKey({ metadata: meta }), ORPHAN_AFTER_MS);
      for (const key of egressKeys(object)) this.#egressQueue.addAfter(key, CLIENTS_AFTER_MS);
    });
    await this.#watch(endpointSlices, ({ object }) => {
      for (const key of egressKeys(object)) this.#egressQueue.add(key);
    });
    await this.#watch(nodes, ({ meta, type }) => {
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
    const { transport, logger } = this.#options;
    const watched = this.#caches
      .all()
      .find(
        ({ resource }) =>
          resource.group === group && resource.version === version && resource.plural === plural,
      );
    if (watched === undefined) throw new TypeError(`there is no cache of ${plural}: add one to caches.ts`);
    const watch = watched.reflector({ transport, logger, namespace });
    watched.onChange((change) => void onEvent(resourceEvent(watched.resource, change)));
    this.#watches.set(plural, watch);
    this.#watching.push(watch.run(this.#stopping.signal));
  }

  /** As in the base class, but by server-side apply, and errors are thrown. */
  protected override async setResourceStatus(
    meta: ResourceMeta,
    status: EgressStatus,
  ): Promise<ResourceMeta> {
    const { name, namespace } = meta;
    const written = await this.#egresses.applyStatus(
      { metadata: { name, namespace }, status },
      { fieldManager: FIELD_MANAGER, force: true, signal: this.#stopping.signal },
    );
    return resourceMeta(EGRESS_RESOURCE, written);
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { transport, settings, logger } = this.#options;
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

    const egresses = egressWorld(transport, this.#caches, this.#events, async (egress, status) => {
      await this.setResourceStatus(resourceMeta(EGRESS_RESOURCE, egress), status);
    });
    const slices = sliceWorld(transport, this.#caches);
    await Promise.all([
      this.#egressQueue.run(
        (key, stop) => reconcileEgress(key, egresses, settings, oneReconcile(logger, { egress: key }), stop),
        signal,
      ),
      this.#sliceQueue.run(
        (key, stop) => reconcileSlice(key, slices, oneReconcile(logger, { slice: key }), stop),
        signal,
      ),
    ]);
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
