/** The node agent: its parts, put together. */

import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  AGENT_SOCKET,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  EgressClientSlice,
  labelValue,
  NODE_LABEL,
  RUN_DIRECTORY,
  SLICE_RESOURCE,
  sliceName,
} from "@egress-nat/crds";
import type { HeartbeatProber } from "@egress-nat/founat";
import {
  type KubeObject,
  pause,
  Reflector,
  type Resource,
  ResourceClient,
  Store,
  type Transport,
} from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import type { Registry } from "prom-client";
import { z } from "zod";
import { CniError, CniErrorCode } from "../cni/error.ts";
import type { PodReference } from "../cni/invocation.ts";
import type { AgentRequest } from "../cni/protocol.ts";
import { StateDirectory } from "../state/state-directory.ts";
import { Asker } from "./acknowledgement.ts";
import { Adder, type PodFacts } from "./add.ts";
import { ClientRegistry } from "./client-registry.ts";
import { CachedEgressView, EgressFacts, ENDPOINT_SLICE_RESOURCE, EndpointSlice } from "./egress-view.ts";
import { AgentMetrics } from "./metrics.ts";
import type { RecordPodEvent } from "./pod-events.ts";
import type { PodNetworks } from "./pod-networks.ts";
import { clientConfig } from "./pod-plan.ts";
import { Reapplier } from "./reapplier.ts";
import { AgentServer } from "./server.ts";
import { egressOf, SliceKeeper } from "./slice-keeper.ts";
import { SliceWriter } from "./slice-writer.ts";
import { Withdrawals } from "./withdrawals.ts";

/** How long an ADD waits for an agent that has just started. */
const START_PATIENCE_MS = 10_000;

/** How long DEL waits for gateways: below the plugin's own patience, and its success does not depend on it. */
const WITHDRAW_PATIENCE_MS = 2_000;

const SWEEP_MS = 15_000;

export interface AgentOptions {
  readonly nodeName: string;
  /** CIDRs of pods, Services and nodes. */
  readonly clusterRanges: readonly string[];
  readonly transport: Transport;
  readonly networks: PodNetworks;
  readonly prober: Pick<HeartbeatProber, "probe">;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Registry;
  readonly logger: Logger;
  /** /run/egress-nat but in tests. */
  readonly runDirectory?: string;
  /** UDP port of the gateways' heartbeat, where it is not the usual one. */
  readonly heartbeatPort?: number;
  /** How long an ADD waits for gateways, in milliseconds; 20 s where it is absent. */
  readonly acknowledgeDeadlineMs?: number;
}

/** Serves the CNI plugin, and keeps this node's clients and slices as the API wants them. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #runDirectory: string;
  readonly #egresses = new Store<EgressFacts>();
  readonly #endpointSlices = new Store<EndpointSlice>();
  readonly #slices = new Store<EgressClientSlice>();
  readonly #reflectors: readonly {
    run(signal: AbortSignal): Promise<void>;
    whenSynced(signal: AbortSignal): Promise<void>;
  }[];
  readonly #view: CachedEgressView;
  readonly #registry: ClientRegistry;
  readonly #withdrawals: Withdrawals;
  readonly #reapplier: Reapplier;
  readonly #keeper: SliceKeeper;
  readonly #adder: Adder;
  readonly #metrics: AgentMetrics;
  readonly #additions = new Map<string, AbortController>();
  readonly #started = Promise.withResolvers<void>();
  #isStarted = false;

  constructor(options: AgentOptions) {
    this.#options = options;
    const { transport, nodeName, networks, clusterRanges, logger, prober, heartbeatPort: port } = options;
    this.#runDirectory = options.runDirectory ?? RUN_DIRECTORY;
    const state = new StateDirectory(this.#runDirectory);
    this.#metrics = new AgentMetrics(options.metrics, {
      clients: () => this.#registry.size,
      tombstones: () => state.tombstones().length,
    });
    const metrics = this.#metrics;
    const registry = new ClientRegistry(state, logger);
    this.#registry = registry;
    const view = new CachedEgressView(this.#egresses, this.#endpointSlices);
    this.#view = view;
    this.#reflectors = [
      this.#reflector(EGRESS_RESOURCE, EgressFacts, this.#egresses),
      this.#reflector(ENDPOINT_SLICE_RESOURCE, EndpointSlice, this.#endpointSlices, EGRESS_LABEL),
      this.#reflector(
        SLICE_RESOURCE,
        EgressClientSlice,
        this.#slices,
        `${NODE_LABEL}=${labelValue(nodeName)}`,
      ),
    ];
    const writer = new SliceWriter({
      client: new ResourceClient(transport, SLICE_RESOURCE, (raw) => EgressClientSlice.parse(raw)),
      nodeName,
      clientsOf: (reference) => registry.ofEgress(reference),
      egress: (reference) => view.egress(reference),
      seen: ({ namespace, name }) => this.#slices.get(`${namespace}/${sliceName(name, nodeName)}`),
    });
    const asker = new Asker(port === undefined ? { prober } : { prober, port });
    const withdrawals = new Withdrawals({
      ...{ state, registry, writer, view, asker, logger },
      onReport: ({ key, failure }) => {
        if (failure !== undefined)
          logger.warn({ address: key, err: failure.error }, "cannot withdraw, trying again");
      },
    });
    this.#withdrawals = withdrawals;
    this.#reapplier = new Reapplier({
      clusterRanges,
      registry,
      view,
      networks,
      withdrawals,
      metrics,
      logger,
    });
    this.#keeper = new SliceKeeper({ state, registry, writer, logger });
    const { recordEvent, acknowledgeDeadlineMs } = options;
    this.#adder = new Adder({
      ...{
        clusterRanges,
        registry,
        view,
        writer,
        withdrawals,
        networks,
        asker,
        metrics,
        recordEvent,
        logger,
      },
      getPod: (pod, signal) => this.#getPod(pod, signal),
      reapply: (containerId) => this.#reapplier.reapply(containerId),
      ...(acknowledgeDeadlineMs === undefined ? {} : { acknowledgeDeadlineMs }),
    });
  }

  /** Whether it knows what it needs to serve clients. */
  get check(): Check {
    return this.#isStarted
      ? { ok: true, reasons: [] }
      : { ok: false, reasons: ["Egresses and gateways are not read from the Kubernetes API yet"] };
  }

  /** Runs until the signal is aborted. Clients go on as they are. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options;
    // A hostPath volume is made readable for all; what is in here, and the socket, is for root alone.
    mkdirSync(this.#runDirectory, { recursive: true });
    chmodSync(this.#runDirectory, 0o700);
    this.#registry.load();
    const server = new AgentServer({
      socketPath: join(this.#runDirectory, AGENT_SOCKET.slice(RUN_DIRECTORY.length)),
      handler: (request, ended) => this.#handle(request, AbortSignal.any([ended, signal])),
      logger,
    });
    await server.start();
    logger.info({ clients: this.#registry.size }, "serving the CNI plugin");
    const running = [
      ...this.#reflectors.map((reflector) => reflector.run(signal)),
      this.#reapplier.run(signal),
      this.#keeper.run(signal),
      this.#withdrawals.run(signal),
      this.#follow(signal),
    ];
    try {
      await Promise.all(running);
    } finally {
      await server.close();
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.whenSynced(signal))).catch(
      () => undefined,
    );
    if (signal.aborted) return;
    this.#keeper.buryStrays(this.#slices.list());
    this.#view.onChange((reference) => {
      this.#reapplier.reapplyClientsOf(reference);
      this.#keeper.inspect(reference);
    });
    this.#slices.onChange(({ object }) => this.#keeper.inspect(egressOf(object)));
    for (const slice of this.#slices.list()) this.#keeper.inspect(egressOf(slice));
    for (const { egresses } of this.#registry.values())
      for (const egress of egresses) this.#keeper.inspect(egress);
    this.#reapplier.reapplyAll();
    this.#isStarted = true;
    this.#started.resolve();
    this.#options.logger.info({ egresses: this.#egresses.size }, "started");
    do await this.#reapplier.sweep();
    while (await pause(SWEEP_MS, signal));
  }

  async #handle(request: AgentRequest, signal: AbortSignal): Promise<void> {
    try {
      switch (request.operation) {
        case "add":
          return await this.#add(request, signal);
        case "delete":
          return await this.#delete(request.containerId);
        case "check":
          return await this.#check(request.containerId);
      }
    } catch (error) {
      const code = error instanceof CniError ? error.code : CniErrorCode.tryAgainLater;
      this.#metrics.errors.inc({ operation: request.operation, code: String(code) });
      throw error;
    }
  }

  async #add(request: Extract<AgentRequest, { operation: "add" }>, signal: AbortSignal): Promise<void> {
    await this.#awaitStart(signal);
    const endTimer = this.#metrics.addSeconds.startTimer();
    const controller = new AbortController();
    this.#additions.set(request.containerId, controller);
    try {
      await this.#adder.add(request, AbortSignal.any([signal, controller.signal]));
    } finally {
      this.#additions.delete(request.containerId);
      endTimer();
    }
  }

  async #delete(containerId: string): Promise<void> {
    this.#additions.get(containerId)?.abort(new DOMException("the pod was deleted", "AbortError"));
    const record = this.#registry.bury(containerId);
    if (record === undefined) return;
    this.#options.logger.info({ pod: record.pod, addresses: record.addresses }, "deleting a client");
    await this.#withdrawals.withdraw(record.addresses, WITHDRAW_PATIENCE_MS);
  }

  async #check(containerId: string): Promise<void> {
    const { networks, clusterRanges } = this.#options;
    const record = this.#registry.get(containerId);
    if (record === undefined) return;
    const differences = await networks.check(record.netns, clientConfig(record, this.#view, clusterRanges));
    if (differences.length === 0) return;
    const { namespace, name } = record.pod;
    throw new CniError(
      CniErrorCode.differs,
      `the network namespace of pod ${namespace}/${name} is not what it should be: ${differences.join("; ")}`,
      "the node agent repairs it when its Egress changes, and when the agent starts",
    );
  }

  async #awaitStart(signal: AbortSignal): Promise<void> {
    if (this.#isStarted) return;
    const patience = AbortSignal.any([signal, AbortSignal.timeout(START_PATIENCE_MS)]);
    const started = await Promise.race([
      this.#started.promise.then(() => true),
      pause(START_PATIENCE_MS, patience),
    ]);
    if (started && this.#isStarted) return;
    throw new CniError(
      CniErrorCode.tryAgainLater,
      "the node agent has not read the Egresses from the Kubernetes API yet",
      "it has just started, or the API does not answer it: its log says which",
    );
  }

  async #getPod({ namespace, name }: PodReference, signal: AbortSignal): Promise<PodFacts> {
    const client = new ResourceClient(this.#options.transport, POD_RESOURCE, (raw) => Pod.parse(raw));
    const { metadata } = await client.get({ namespace, name }, { signal });
    return { uid: metadata.uid, annotations: metadata.annotations };
  }

  #reflector<T extends KubeObject>(
    resource: Resource,
    schema: z.ZodType<T>,
    store: Store<T>,
    labelSelector?: string,
  ) {
    const { transport, logger } = this.#options;
    return new Reflector({
      transport,
      resource,
      store,
      logger,
      labelSelector,
      parse: (raw) => schema.parse(raw),
    });
  }
}

const POD_RESOURCE = { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true } as const;

const Pod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
});
