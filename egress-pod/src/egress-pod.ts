import { isDeepStrictEqual } from "node:util";
import { EGRESS_LABEL, EGRESS_RESOURCE, labelValue, SLICE_RESOURCE } from "@egress-nat/crds";
import type { GatewayConfig } from "@egress-nat/founat";
import {
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
import { type GatewayEgress, gatewayConfig, parseEgress } from "./egress.ts";
import { type GatewayPort, GatewaySync } from "./gateway-sync.ts";
import type { Metrics } from "./metrics.ts";
import { type GatewaySlice, parseSlice } from "./slice.ts";

export interface EgressPodOptions {
  /** The Egress that this gateway serves. */
  readonly egress: { readonly namespace: string; readonly name: string };
  /** CIDRs that no client reaches through a gateway. */
  readonly clusterRanges: readonly string[];
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
  readonly #queue: WorkQueue;
  readonly #sync: GatewaySync;
  #failure: unknown = new Error("the rule set has not been applied yet");
  #terminating = false;
  readonly #unused = Promise.withResolvers<void>();

  constructor(options: EgressPodOptions) {
    const { egress, transport, createGateway, logger } = options;
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
    this.#egresses.onChange(({ object, previous }) => {
      // Most of its status is nothing that a gateway is made of, and to look at ten thousand clients takes time.
      if (
        previous === undefined ||
        !isDeepStrictEqual([object.spec, object.status], [previous.spec, previous.status])
      ) {
        this.#queue.add(GATEWAY);
      }
    });
    this.#slices.onChange(() => this.#queue.add(GATEWAY));
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#egressReflector.run(signal),
      this.#sliceReflector.run(signal),
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
   * Stops being ready, and goes on to serve: clients and their flows may be here for as long as the pod's grace period
   * lets them.
   *
   * @returns when there is no client left
   */
  async terminate(): Promise<void> {
    this.#terminating = true;
    this.#queue.add(GATEWAY);
    await this.#unused.promise;
  }

  get #synced(): boolean {
    return this.#egressReflector.state.synced && this.#sliceReflector.state.synced;
  }

  async #bringUpToDate() {
    const [egress] = this.#egresses.list();
    const { clusterRanges, logger, metrics } = this.#options;
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
    if (this.#terminating && state.clients.size === 0) this.#unused.resolve();
    return done;
  }

  *#reasonsNotToServe(): Generator<string> {
    const { namespace, name } = this.#options.egress;
    const hint = "(is the API server reachable, and is there a Role that allows it?)";
    if (this.#terminating) yield "the pod is terminating";
    if (!this.#egressReflector.state.synced)
      yield `Egress ${namespace}/${name} has not been read yet ${hint}`;
    else if (this.#egresses.size === 0) yield `Egress ${namespace}/${name} does not exist`;
    if (!this.#sliceReflector.state.synced) {
      yield `EgressClientSlices in ${namespace} have not been listed yet ${hint}`;
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
