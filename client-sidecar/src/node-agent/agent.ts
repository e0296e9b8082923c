/** The node agent: its parts, put together. */

import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { AGENT_SOCKET, EgressClientSlice, RUN_DIRECTORY, SLICE_RESOURCE } from "@egress-nat/crds";
import type { HeartbeatProber } from "@egress-nat/founat";
import { pause, ResourceClient, type Transport } from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import type { Registry } from "prom-client";
import { Adder } from "../client/adder.ts";
import { DriftWatch } from "../client/drift-watch.ts";
import { Leftovers } from "../client/leftovers.ts";
import { Lives } from "../client/lives.ts";
import { ClientMetrics } from "../client/metrics.ts";
import type { PodNetworks } from "../client/networks.ts";
import type { RecordPodEvent } from "../client/pod.ts";
import { Reapplier } from "../client/reapplier.ts";
import { ClientRegistry } from "../client/registry.ts";
import { Withdrawals } from "../client/withdrawals.ts";
import { Asker } from "../gateways/health.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { NODE_LOCATIONS, type StateLocations } from "../records/state-folder.ts";
import { Tombstones } from "../records/tombstones.ts";
import { egressOf, SliceKeeper } from "../slices/keeper.ts";
import { SliceWriter } from "../slices/writer.ts";
import { ClusterCache } from "./cluster-cache.ts";
import { podLookup } from "./pod-lookup.ts";
import { RequestHandler } from "./requests.ts";
import { AgentServer } from "./socket.ts";

const SWEEP_MS = 15_000;

export interface AgentOptions {
  readonly nodeName: string;
  /** Namespace of the product. */
  readonly namespace: string;
  readonly transport: Transport;
  readonly networks: PodNetworks;
  readonly prober: Pick<HeartbeatProber, "probe">;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Registry;
  readonly logger: Logger;
  /** The node's but in tests. */
  readonly locations?: StateLocations;
  /** UDP port of the gateways' heartbeat, where it is not the usual one. */
  readonly heartbeatPort?: number;
  /** How long an ADD waits for gateways, in milliseconds; 20 s if it is absent. */
  readonly acknowledgeDeadlineMs?: number;
}

/** Serves the CNI plugin, and keeps this node's clients and slices as the API wants them. */
export class Agent {
  readonly #logger: Logger;
  readonly #locations: StateLocations;
  readonly #cache: ClusterCache;
  readonly #registry: ClientRegistry;
  readonly #withdrawals: Withdrawals;
  readonly #leftovers: Leftovers;
  readonly #reapplier: Reapplier;
  readonly #driftWatch: DriftWatch;
  readonly #keeper: SliceKeeper;
  readonly #requests: RequestHandler;
  readonly #started = Promise.withResolvers<void>();
  #isStarted = false;

  constructor(options: AgentOptions) {
    const { transport, nodeName, namespace, networks, logger, prober } = options;
    const { locations = NODE_LOCATIONS, heartbeatPort: port, acknowledgeDeadlineMs, recordEvent } = options;
    this.#logger = logger;
    this.#locations = locations;
    this.#cache = new ClusterCache({ transport, nodeName, namespace, logger });
    const cache = this.#cache;
    const { view } = cache;
    const state = new NodeState(locations);
    const registry = new ClientRegistry(state, logger);
    this.#registry = registry;
    const tombstones = new Tombstones(state, logger);
    const metrics = new ClientMetrics(options.metrics, {
      clients: () => registry.size,
      tombstones: () => tombstones.addresses().length,
      invalidEgresses: () => view.invalidEgresses,
      driftWatchUp: () => (this.#driftWatch.check.ok ? 1 : 0),
    });
    const writer = new SliceWriter({
      client: new ResourceClient(transport, SLICE_RESOURCE, (raw) => EgressClientSlice.parse(raw)),
      nodeName,
      clientsOf: (reference) => registry.ofEgress(reference),
      egress: (reference) => view.egress(reference),
      seen: (reference) => cache.slice(reference),
    });
    const asker = new Asker(port === undefined ? { prober } : { prober, port });
    const withdrawals = new Withdrawals({ tombstones, registry, slices: writer, view, asker, logger });
    this.#withdrawals = withdrawals;
    const leftovers = new Leftovers({ registry, networks, logger });
    this.#leftovers = leftovers;
    const lives = new Lives({ registry, networks, leftovers, withdrawals, logger });
    const shared = { registry, view, networks, withdrawals, lives, recordEvent, metrics, logger };
    this.#reapplier = new Reapplier(shared);
    // Whom an ADD still works on is left alone: a pod waits for it, and nobody else is in its namespace yet.
    const added = {
      values: () => registry.values().filter((one) => !registry.isAdding(recordId(one))),
    };
    this.#driftWatch = new DriftWatch({ ...shared, registry: added, reapplier: this.#reapplier });
    this.#keeper = new SliceKeeper({ tombstones, registry, writer, logger });
    const adder = new Adder({
      ...{ ...shared, state, slices: writer, asker },
      lookUpPod: podLookup(transport),
      reapply: (containerId) => this.#reapplier.reapply(containerId),
      ...(acknowledgeDeadlineMs === undefined ? {} : { acknowledgeDeadlineMs }),
    });
    this.#requests = new RequestHandler({ ...shared, adder, started: this.#started.promise });
  }

  /** Whether it knows what it needs to serve clients. */
  get check(): Check {
    return this.#isStarted ? this.#driftWatch.check : { ok: false, reasons: this.#cache.missing };
  }

  /** Runs until the signal is aborted. Clients go on as they are. */
  async run(signal: AbortSignal): Promise<void> {
    // A hostPath volume is made readable for all; what is in here, and the socket, is for root alone.
    const { runDirectory, stateDirectory } = this.#locations;
    for (const directory of [runDirectory, stateDirectory]) {
      mkdirSync(directory, { recursive: true });
      chmodSync(directory, 0o700);
    }
    this.#registry.load();
    const server = new AgentServer({
      socketPath: join(runDirectory, AGENT_SOCKET.slice(RUN_DIRECTORY.length)),
      handler: (request, ended) => this.#requests.handle(request, AbortSignal.any([ended, signal])),
      logger: this.#logger,
    });
    await server.start();
    this.#logger.info({ clients: this.#registry.size }, "serving the CNI plugin");
    try {
      await Promise.all([this.#cache.run(signal), this.#work(signal)]);
    } finally {
      await server.close();
    }
  }

  /** Nothing is decided before all that it is decided by is known: an Egress not yet read is not one that is gone. */
  async #work(signal: AbortSignal): Promise<void> {
    await this.#cache.whenKnown(signal).catch(() => undefined);
    if (signal.aborted) return;
    this.#keeper.buryStrays(this.#cache.slices.list());
    this.#follow();
    this.#isStarted = true;
    this.#started.resolve();
    this.#logger.info({ clients: this.#registry.size }, "started");
    await Promise.all([
      this.#reapplier.run(signal),
      this.#driftWatch.run(signal),
      this.#keeper.run(signal),
      this.#withdrawals.run(signal),
      this.#leftovers.run(signal),
      this.#sweep(signal),
    ]);
  }

  /** From now on every change has its effect; what is already here has its own once. */
  #follow(): void {
    const { view, slices } = this.#cache;
    view.onChange((reference) => {
      this.#reapplier.reapplyClientsOf(reference);
      this.#keeper.inspect(reference);
    });
    view.onClusterRanges(() => this.#reapplier.reapplyAll());
    slices.onChange(({ object }) => this.#keeper.inspect(egressOf(object)));
    this.#reapplier.reapplyAll();
    const recorded = this.#registry.values().flatMap(({ egresses }) => egresses);
    for (const reference of [...slices.list().map(egressOf), ...recorded]) this.#keeper.inspect(reference);
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    do await this.#reapplier.sweep();
    while (await pause(SWEEP_MS, signal));
  }
}
