import { familyOf } from "@egress-nat/addresses";
import {
  CLUSTER_RANGES_CONFIG_MAP,
  ClusterRanges,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  isInvalid,
  labelValue,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import type { GatewayConfig, GatewayWatchOptions, Suspicion } from "@egress-nat/founat";
import {
  abortable,
  Cache,
  CacheSet,
  CONFIG_MAP_RESOURCE,
  done,
  type ReflectorEvent,
  type Resource,
  type Transport,
  WorkQueue,
} from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import { desiredState } from "./desired-state.ts";
import { drain } from "./drain.ts";
import { DrainReport } from "./drain-report.ts";
import { Drift } from "./drift.ts";
import {
  drainTimeoutMs,
  type GatewayEgress,
  gatewayConfig,
  lastUnderstood,
  parseStoredEgress,
  type StoredEgress,
} from "./egress.ts";
import type { GatewayEvent, RecordGatewayEvent } from "./gateway-event.ts";
import { type GatewayPort, GatewaySync } from "./gateway-sync.ts";
import type { Metrics } from "./metrics.ts";
import { reasonOf } from "./reason.ts";
import { type GatewaySlice, parseSlice } from "./slice.ts";
import { type AskUplinks, othersOf } from "./uplink/others.ts";
import type { Ping } from "./uplink/ping.ts";
import { isUplinkKey, Uplink } from "./uplink/uplink.ts";

export interface EgressPodOptions {
  readonly egress: { readonly namespace: string; readonly name: string };
  /** The pod's own addresses, as the API names them. */
  readonly addresses: readonly string[];
  /** For how long the pod's grace period lets it drain. */
  readonly drainSeconds: number;
  /** Where the operator publishes the cluster's networks, which no client reaches through a gateway. */
  readonly clusterRangesNamespace: string;
  readonly transport: Transport;
  readonly createGateway: (config: GatewayConfig) => GatewayPort;
  /** How many flows of clients the kernel has that are not over, whoever has let them in. @throws FounatError */
  readonly liveFlows: () => Promise<number>;
  /** Follows what others change in the kernel until the signal is aborted, and calls `onChange` when they may have. */
  readonly watchKernel: (
    watch: Pick<GatewayWatchOptions, "ownTransactions" | "onChange">,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly ping: Ping;
  readonly askUplinks: AskUplinks;
  readonly recordEvent: RecordGatewayEvent;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The one piece of work: bring the kernel up to date. */
const GATEWAY = "gateway";

const BACKOFF = { baseMs: 100, maxMs: 10_000 };

/**
 * One gateway: follows its Egress and the slices of its clients, and keeps the kernel equal to them. It takes nothing
 * out of the kernel when it ends: packets flow on, and who starts next goes on from what is there.
 */
export class EgressPod {
  readonly #options: EgressPodOptions;
  readonly #egresses: Cache<StoredEgress>;
  /** What it serves by: what was last understood of the Egress that is there. */
  #egress: GatewayEgress | undefined;
  /** Whether a former process may have understood the Egress that is there: none has ended since this one started. */
  #mayBeServed = true;
  readonly #slices: Cache<GatewaySlice>;
  readonly #caches: CacheSet;
  /** Those of a ConfigMap that was deleted, or is not understood any more, hold on. */
  #clusterRanges: readonly string[] | undefined;
  readonly #queue: WorkQueue;
  readonly #sync: GatewaySync;
  /** Why the kernel is not as it should be. */
  #failure: string | undefined = "the rule set has not been applied yet";
  readonly #drift: Drift;
  readonly #drainReport: DrainReport;
  readonly #uplink: Uplink;
  readonly #applied = Promise.withResolvers<void>();

  constructor(options: EgressPodOptions) {
    const { addresses, clusterRangesNamespace, createGateway, logger, metrics } = options;
    const { namespace, name } = options.egress;
    this.#options = options;
    this.#sync = new GatewaySync(createGateway);
    this.#drift = new Drift({ ...options, sync: this.#sync });
    this.#drainReport = new DrainReport({ logger, recordEvent: this.#record });
    this.#uplink = new Uplink({
      ...{ ping: options.ping, recordEvent: this.#record, logger },
      targets: () => this.#egress && (this.#egress.spec.uplinkProbe?.targets ?? []),
      families: new Set(addresses.map(familyOf)),
      ...othersOf(() => this.#egress, addresses, options.askUplinks),
    });
    metrics.watch({
      clients: () => this.#sync.applied?.clients.size ?? 0,
      slices: () => this.#sync.applied?.slices.size ?? 0,
      drainingFlows: () => this.#drainReport.flows,
      drops: () => this.#sync.drops(),
    });
    this.#queue = new WorkQueue({
      concurrency: 1,
      backoff: BACKOFF,
      onReport: ({ outcome, durationMs }) =>
        metrics.applied(outcome === "error" ? "error" : "success", durationMs),
      onFailure: ({ error: err, failures, retryAfterMs }) =>
        logger.warn({ err, failures, retryAfterMs }, "cannot apply the rule set, trying again"),
    });
    this.#egresses = new Cache({
      ...this.#collection(EGRESS_RESOURCE),
      namespace,
      fieldSelector: `metadata.name=${name}`,
      parse: parseStoredEgress,
    });
    this.#slices = new Cache({
      ...this.#collection(SLICE_RESOURCE),
      namespace,
      labelSelector: `${EGRESS_LABEL}=${labelValue(name)}`,
      parse: (raw) => parseSlice(raw, logger),
    });
    const clusterRanges = new Cache({
      ...this.#collection(CONFIG_MAP_RESOURCE),
      namespace: clusterRangesNamespace,
      fieldSelector: `metadata.name=${CLUSTER_RANGES_CONFIG_MAP}`,
      parse: (raw) => ClusterRanges.parse(raw),
    });
    this.#caches = new CacheSet([this.#egresses, this.#slices, clusterRanges]);
    clusterRanges.onChange(({ type, object }) => {
      if (type === "deleted" || object.data === undefined) return;
      this.#clusterRanges = object.data.ranges;
      this.#queue.add(GATEWAY);
    });
    this.#egresses.onChange(({ type, object }) => {
      this.#egress = type === "deleted" ? undefined : lastUnderstood(object, this.#egress);
      if (type === "deleted") this.#mayBeServed = false;
      this.#tellIfInvalid(object);
      this.#queue.add(GATEWAY);
    });
    this.#slices.onChange(() => this.#queue.add(GATEWAY));
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#caches.run(signal),
      this.#queue.run(() => this.#bringUpToDate(), signal),
      this.#watchKernel(signal),
      this.#uplink.run(signal),
    ]);
  }

  /** Whether clients may be sent here, and why not. */
  ready(): Check {
    const reasons = [...this.#reasonsNotToServe()];
    return { ok: reasons.length === 0, reasons };
  }

  /** The answer to a key of a heartbeat: of the way out, or the UID of a slice. */
  heartbeat(key: string): string | undefined {
    return isUplinkKey(key) ? this.#uplink.heartbeat(key) : this.appliedGeneration(key);
  }

  /**
   * @param sliceUid UID of an EgressClientSlice
   * @returns the generation of the slice whose clients the kernel serves; undefined when it serves none of them. While
   *   it is not known what the kernel holds, every slice counts as one not applied yet: "unknown" would free addresses.
   */
  appliedGeneration(sliceUid: string): string | undefined {
    const { applied } = this.#sync;
    return applied === undefined ? "0" : applied.slices.get(sliceUid)?.toString();
  }

  /**
   * Serves on until the flows of its clients are over, or the Egress's drain time is. It stays ready: Kubernetes has
   * taken it off the ready endpoints already, and kube-proxy sends to a terminating one only while it still says that it
   * serves (https://kep.k8s.io/1669).
   *
   * @returns when it may end
   */
  async drain(): Promise<void> {
    const { drainSeconds, liveFlows, logger } = this.#options;
    const drained = await drain({
      hasClients: () => this.#sync.applied?.clients.size !== 0,
      liveFlows,
      // Of an Egress that has not been read yet nobody knows that it leaves less.
      timeoutMs: () =>
        this.#egresses.state.synced
          ? drainTimeoutMs(this.#egress ?? this.#stored, drainSeconds)
          : 1000 * drainSeconds,
      onProgress: (progress) => this.#drainReport.progress(progress),
      logger,
    });
    this.#drainReport.end(drained);
  }

  readonly #record = (event: GatewayEvent): void => {
    if (this.#stored !== undefined) this.#options.recordEvent(this.#stored, event);
  };

  /** As the API has it, understood or not. */
  get #stored(): StoredEgress | undefined {
    return this.#egresses.store.list()[0];
  }

  get #synced(): boolean {
    return this.#egresses.state.synced && this.#slices.state.synced;
  }

  /** Not before all clients are there: to hear of ten thousand of them would take longer than to write them. */
  async #watchKernel(signal: AbortSignal): Promise<void> {
    await abortable(this.#applied.promise, signal).catch(() => undefined);
    if (signal.aborted) return;
    const onChange = (where: Suspicion) => {
      this.#drift.suspect(where);
      this.#queue.add(GATEWAY);
    };
    await this.#options.watchKernel({ ownTransactions: () => this.#sync.transactions, onChange }, signal);
  }

  async #bringUpToDate() {
    const [egress, clusterRanges] = [this.#egress, this.#clusterRanges];
    const { addresses, logger } = this.#options;
    if (clusterRanges === undefined) return done;
    // It is there, and nobody knows what it says: what the kernel has from a former process stays.
    if (egress === undefined && this.#stored !== undefined && this.#mayBeServed) return done;
    if (!this.#synced) {
      // Ten thousand clients take a while to arrive.
      if (egress !== undefined) await this.#sync.prepare(gatewayConfig(egress, clusterRanges, addresses));
      return done;
    }
    const state = desiredState(egress, this.#slices.store.list(), clusterRanges, addresses);
    const onFound = (reason: string) => {
      this.#failure = reason;
    };
    try {
      if (this.#sync.applied !== undefined) await this.#drift.takeBack(egress, onFound);
      await this.#sync.apply(state);
      // To apply all of it is to compare much, but not every element.
      await this.#drift.takeBack(egress, onFound);
      this.#failure = undefined;
      this.#applied.resolve();
    } catch (error) {
      this.#failure = reasonOf(error);
      throw error;
    }
    logger.debug({ clients: state.clients.size, slices: state.slices.size }, "rule set is up to date");
    return done;
  }

  *#reasonsNotToServe(): Generator<string> {
    const { namespace, name } = this.#options.egress;
    const hint = "(is the API server reachable, and is there a Role that allows it?)";
    if (!this.#egresses.state.synced) yield `Egress ${namespace}/${name} has not been read yet ${hint}`;
    else if (this.#stored === undefined) yield `Egress ${namespace}/${name} does not exist`;
    else if (this.#egress === undefined && isInvalid(this.#stored)) {
      yield `Egress ${namespace}/${name} is not understood by this release: ${this.#stored.invalid}`;
    }
    if (!this.#slices.state.synced) {
      yield `EgressClientSlices in ${namespace} have not been listed yet ${hint}`;
    }
    if (this.#clusterRanges === undefined) {
      const configMap = `${this.#options.clusterRangesNamespace}/${CLUSTER_RANGES_CONFIG_MAP}`;
      yield `the networks of the cluster have not been read yet from ConfigMap ${configMap} (does the operator run?)`;
    }
    if (this.#synced && this.#failure !== undefined) yield this.#failure;
    if (this.#uplink.reason !== undefined) yield this.#uplink.reason;
  }

  #tellIfInvalid(egress: StoredEgress): void {
    if (!isInvalid(egress)) return;
    const { logger, metrics } = this.#options;
    metrics.invalidObject(EGRESS_RESOURCE.kind);
    logger.warn({ invalid: egress.invalid }, "cannot understand the Egress, using what was last known of it");
  }

  #collection(resource: Resource) {
    const { transport, logger, metrics } = this.#options;
    const onEvent = ({ type }: ReflectorEvent) => {
      if (type === "synced") this.#queue.add(GATEWAY);
      if (type === "invalid") metrics.invalidObject(resource.kind);
    };
    return { transport, logger, resource, onEvent };
  }
}
