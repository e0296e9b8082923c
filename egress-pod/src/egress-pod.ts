import {
  CLUSTER_RANGES_CONFIG_MAP,
  ClusterRanges,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  labelValue,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import type { GatewayConfig } from "@egress-nat/founat";
import {
  CONFIG_MAP_RESOURCE,
  done,
  Reflector,
  type ReflectorEvent,
  type Resource,
  Store,
  type Transport,
  WorkQueue,
  type WorkReport,
} from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import { desiredState } from "./desired-state.ts";
import { drain } from "./drain.ts";
import { type GatewayEgress, gatewayConfig, parseEgress } from "./egress.ts";
import { type GatewayPort, GatewaySync } from "./gateway-sync.ts";
import type { Metrics } from "./metrics.ts";
import { type GatewaySlice, parseSlice } from "./slice.ts";

export interface EgressPodOptions {
  /** The Egress that this gateway serves. */
  readonly egress: { readonly namespace: string; readonly name: string };
  /** Where the operator publishes the cluster's networks, which no client reaches through a gateway. */
  readonly clusterRangesNamespace: string;
  readonly transport: Transport;
  readonly createGateway: (config: GatewayConfig) => GatewayPort;
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
  readonly #egresses = new Store<GatewayEgress>();
  readonly #slices = new Store<GatewaySlice>();
  readonly #egressReflector: Reflector<GatewayEgress>;
  readonly #sliceReflector: Reflector<GatewaySlice>;
  readonly #clusterRangesReflector: Reflector<ClusterRanges>;
  /** Those of a ConfigMap that was deleted, or is not understood any more, hold on. */
  #clusterRanges: readonly string[] | undefined;
  readonly #queue: WorkQueue;
  readonly #sync: GatewaySync;
  #failure: unknown = new Error("the rule set has not been applied yet");

  constructor(options: EgressPodOptions) {
    const { egress, clusterRangesNamespace, transport, createGateway, logger } = options;
    const { namespace, name } = egress;
    this.#options = options;
    this.#sync = new GatewaySync(createGateway);
    this.#queue = new WorkQueue({
      concurrency: 1,
      backoff: BACKOFF,
      onReport: (report) => this.#report(report),
    });
    this.#egressReflector = new Reflector({
      transport,
      resource: EGRESS_RESOURCE,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      parse: parseEgress,
      store: this.#egresses,
      logger,
      onEvent: (event) => this.#observe(EGRESS_RESOURCE, event),
    });
    this.#sliceReflector = new Reflector({
      transport,
      resource: SLICE_RESOURCE,
      namespace,
      labelSelector: `${EGRESS_LABEL}=${labelValue(name)}`,
      parse: (raw) => parseSlice(raw, logger),
      store: this.#slices,
      logger,
      onEvent: (event) => this.#observe(SLICE_RESOURCE, event),
    });
    const clusterRanges = new Store<ClusterRanges>();
    this.#clusterRangesReflector = new Reflector({
      transport,
      resource: CONFIG_MAP_RESOURCE,
      namespace: clusterRangesNamespace,
      fieldSelector: `metadata.name=${CLUSTER_RANGES_CONFIG_MAP}`,
      parse: (raw) => ClusterRanges.parse(raw),
      store: clusterRanges,
      logger,
      onEvent: (event) => this.#observe(CONFIG_MAP_RESOURCE, event),
    });
    clusterRanges.onChange(({ type, object }) => {
      if (type === "deleted" || object.data === undefined) return;
      this.#clusterRanges = object.data.ranges;
      this.#queue.add(GATEWAY);
    });
    this.#egresses.onChange(() => this.#queue.add(GATEWAY));
    this.#slices.onChange(() => this.#queue.add(GATEWAY));
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#egressReflector.run(signal),
      this.#sliceReflector.run(signal),
      this.#clusterRangesReflector.run(signal),
      this.#queue.run(() => this.#bringUpToDate(), signal),
    ]);
  }

  /** Whether clients may be sent here, and why not. */
  ready(): Check {
    const reasons = [...this.#reasonsNotToServe()];
    return { ok: reasons.length === 0, reasons };
  }

  /**
   * The answer to a heartbeat.
   *
   * @param sliceUid UID of an EgressClientSlice
   * @returns the generation of the slice whose clients the kernel serves; undefined when it serves none of them. While
   *   it is not known what the kernel holds, every slice counts as one not applied yet: "unknown" would free addresses.
   */
  appliedGeneration(sliceUid: string): string | undefined {
    if (!this.#sync.isCertain) return "0";
    return this.#sync.appliedSlices.get(sliceUid)?.toString();
  }

  /**
   * Serves on until the flows of its clients are over, or the Egress's drain time is. It stays ready: Kubernetes has
   * taken it off the ready endpoints already, and kube-proxy sends to a terminating one only while it still says that it
   * serves (https://kep.k8s.io/1669).
   *
   * @returns when it may end
   */
  async drain(): Promise<void> {
    const { logger } = this.#options;
    logger.info({ drainTimeoutSeconds: this.#drainTimeoutSeconds }, "draining");
    const reason = await drain({
      hasClients: () => !this.#sync.isCertain || this.#sync.appliedClients > 0,
      liveFlows: () => this.#sync.liveFlows(),
      timeoutMs: () => this.#drainTimeoutSeconds * 1000,
      logger,
    });
    logger.info({ reason }, "drained");
  }

  /** Of an Egress that is gone no time is left. */
  get #drainTimeoutSeconds(): number {
    return this.#egresses.list()[0]?.spec.drainTimeoutSeconds ?? 0;
  }

  get #synced(): boolean {
    return this.#egressReflector.state.synced && this.#sliceReflector.state.synced;
  }

  async #bringUpToDate() {
    const [egress] = this.#egresses.list();
    const clusterRanges = this.#clusterRanges;
    const { logger, metrics } = this.#options;
    if (clusterRanges === undefined) return done;
    if (!this.#synced) {
      // Ten thousand clients take a while to arrive.
      if (egress !== undefined) await this.#sync.prepare(gatewayConfig(egress, clusterRanges));
      return done;
    }
    const state = desiredState(egress, this.#slices.list(), clusterRanges);
    try {
      await this.#sync.apply(state);
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error;
      throw error;
    } finally {
      metrics.serves(this.#sync.appliedClients, this.#sync.appliedSlices.size);
    }
    logger.debug({ clients: state.clients.size, slices: state.slices.size }, "rule set is up to date");
    return done;
  }

  *#reasonsNotToServe(): Generator<string> {
    const { namespace, name } = this.#options.egress;
    const hint = "(is the API server reachable, and is there a Role that allows it?)";
    if (!this.#egressReflector.state.synced)
      yield `Egress ${namespace}/${name} has not been read yet ${hint}`;
    else if (this.#egresses.size === 0) yield `Egress ${namespace}/${name} does not exist`;
    if (!this.#sliceReflector.state.synced) {
      yield `EgressClientSlices in ${namespace} have not been listed yet ${hint}`;
    }
    if (this.#clusterRanges === undefined) {
      const configMap = `${this.#options.clusterRangesNamespace}/${CLUSTER_RANGES_CONFIG_MAP}`;
      yield `the networks of the cluster have not been read yet from ConfigMap ${configMap} (does the operator run?)`;
    }
    if (this.#synced && this.#failure !== undefined) yield messageOf(this.#failure);
  }

  #observe({ kind }: Resource, event: ReflectorEvent): void {
    if (event.type === "synced") this.#queue.add(GATEWAY);
    if (event.type === "invalid") this.#options.metrics.invalidObject(kind);
  }

  #report({ durationMs, failure }: WorkReport): void {
    const { logger, metrics } = this.#options;
    metrics.applied(failure ? "error" : "success", durationMs);
    if (!failure) return;
    const { error, failures, retryAfterMs } = failure;
    logger.warn({ err: error, failures, retryAfterMs }, "rule set could not be applied, trying again");
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
