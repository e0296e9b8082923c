/** The node agent: its parts, put together. */

import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { AGENT_SOCKET, EgressClientSlice, RUN_DIRECTORY, SLICE_RESOURCE } from "@egress-nat/crds";
import type { HeartbeatProber } from "@egress-nat/founat";
import { Backoff, pause, ResourceClient } from "@egress-nat/kube";
import type { Check } from "@egress-nat/program";
import type { Registry } from "prom-client";
import { Adder } from "../client/adder.ts";
import { DriftWatch, type DriftWatchOptions } from "../client/drift-watch.ts";
import { gatewaysInUse, namedGatewaysInUse, probeGateway } from "../client/gateways-in-use.ts";
import { Leftovers } from "../client/leftovers.ts";
import { livesOf } from "../client/lives.ts";
import { type ClientMetrics, clientMetrics } from "../client/metrics.ts";
import type { PodNetworks } from "../client/networks.ts";
import type { RecordPodEvent } from "../client/pod.ts";
import { Reapplier } from "../client/reapplier.ts";
import { ClientRegistry } from "../client/registry.ts";
import { Steerer } from "../client/steerer.ts";
import { Withdrawals } from "../client/withdrawals.ts";
import { askBy, beatBy } from "../gateways/health.ts";
import { Heartbeats } from "../gateways/heartbeats.ts";
import { NodeState } from "../records/node-state.ts";
import { NODE_LOCATIONS, type StateLocations } from "../records/state-folder.ts";
import { egressOf, SliceKeeper } from "../slices/keeper.ts";
import { GatewayReporter } from "../slices/reporter.ts";
import { SliceWriter } from "../slices/writer.ts";
import { ClusterCache, type ClusterCacheOptions } from "./cluster-cache.ts";
import { podLookup } from "./pod-lookup.ts";
import { RequestHandler } from "./requests.ts";
import { AgentServer } from "./socket.ts";

const SWEEP_MS = 15_000;

/** The node may be short of file descriptors for a moment. */
const READ_BACKOFF = { baseMs: 500, maxMs: 15_000 };

export interface AgentOptions extends ClusterCacheOptions {
  readonly networks: PodNetworks;
  readonly prober: Pick<HeartbeatProber, "probe">;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Registry;
  /** The node's but in tests. */
  readonly locations?: StateLocations;
  /** UDP port of the gateways' heartbeat, where it is not the usual one. */
  readonly heartbeatPort?: number;
  /** How long an ADD waits for gateways, in milliseconds; 20 s if it is absent. */
  readonly acknowledgeDeadlineMs?: number;
}

/** Serves the CNI plugin, and keeps this node's clients and slices as the API wants them. */
export class Agent {
  readonly #options: Required<Pick<AgentOptions, "locations" | "logger">>;
  readonly #cache: ClusterCache;
  readonly #parts: ReturnType<typeof partsOf>;
  readonly #started = Promise.withResolvers<void>();
  #isStarted = false;

  constructor(options: AgentOptions) {
    const { locations = NODE_LOCATIONS, logger } = options;
    this.#options = { locations, logger };
    this.#cache = new ClusterCache(options, (address) => this.#parts.heartbeats.pulse(address));
    this.#parts = partsOf({ ...options, locations }, this.#cache, this.#started.promise);
  }

  /** Whether it knows what it needs to serve clients. */
  get check(): Check {
    return this.#isStarted ? this.#parts.driftWatch.check : { ok: false, reasons: this.#cache.missing };
  }

  /** Runs until the signal is aborted. Clients go on as they are. */
  async run(signal: AbortSignal): Promise<void> {
    const { registry, requests } = this.#parts;
    const { locations, logger } = this.#options;
    // A hostPath volume is made readable for all; what is in here, and the socket, is for root alone.
    for (const directory of [locations.runDirectory, locations.stateDirectory]) {
      mkdirSync(directory, { recursive: true });
      chmodSync(directory, 0o700);
    }
    await this.#insist(() => registry.load(), signal);
    if (signal.aborted) return;
    const server = new AgentServer({
      socketPath: join(locations.runDirectory, AGENT_SOCKET.slice(RUN_DIRECTORY.length)),
      handler: (request, ended) => requests.handle(request, AbortSignal.any([ended, signal])),
      logger,
    });
    await server.start();
    logger.info({ clients: registry.values().length }, "serving the CNI plugin");
    try {
      await Promise.all([this.#cache.run(signal), this.#work(signal)]);
    } finally {
      await server.close();
    }
  }

  /** Reads what the agent before has left, once that can be read: to take it for nothing would set addresses free. */
  async #insist(read: () => void, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(READ_BACKOFF);
    while (!signal.aborted) {
      try {
        return read();
      } catch (err) {
        this.#options.logger.error({ err }, "cannot read the state of this node, trying again");
        await pause(backoff.next(), signal);
      }
    }
  }

  /** Nothing is decided before all that it is decided by is known: an Egress not yet read is not one that is gone. */
  async #work(signal: AbortSignal): Promise<void> {
    const { registry, steerer, reapplier, driftWatch, keeper, withdrawals, leftovers } = this.#parts;
    const { heartbeats, reporter } = this.#parts;
    await this.#cache.whenKnown(signal).catch(() => undefined);
    if (signal.aborted) return;
    // What the agent before has known of gateways that do not answer is not to be forgotten for a second.
    const beating = heartbeats.run(signal);
    await heartbeats.settled;
    await this.#insist(() => keeper.buryStrays(this.#cache.slices.list()), signal);
    if (signal.aborted) return;
    reporter.load(this.#cache.slices.list());
    this.#follow();
    this.#isStarted = true;
    this.#started.resolve();
    this.#options.logger.info({ clients: registry.values().length }, "started");
    const running = [reporter, steerer, reapplier, driftWatch, keeper, withdrawals, leftovers].map((part) =>
      part.run(signal),
    );
    await Promise.all([beating, ...running, this.#sweep(signal)]);
  }

  /** From now on every change has its effect; what is already here has its own once. */
  #follow(): void {
    const { view, slices } = this.#cache;
    const { registry, steerer, reapplier, keeper, writer } = this.#parts;
    view.onChange((reference) => {
      steerer.steer(registry.ofEgress(reference));
      keeper.inspect(reference);
    });
    view.onClusterRanges(() => reapplier.reapply(registry.values()));
    slices.onChange(({ object }) => keeper.inspect(egressOf(object)));
    this.#cache.onSliceEvent(({ type }) => {
      if (type === "rewound") writer.forget();
      // A slice that was written after the backup, and never seen, has not changed by what the store knows.
      if (type === "synced") this.#inspectSlices();
    });
    reapplier.reapply(registry.values());
    this.#inspectSlices();
  }

  #inspectSlices(): void {
    const { registry, keeper } = this.#parts;
    const recorded = registry.values().flatMap(({ egresses }) => egresses);
    const listed = this.#cache.slices.list().map(egressOf);
    for (const reference of [...listed, ...recorded]) keeper.inspect(reference);
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { reapplier, writer } = this.#parts;
    do {
      await reapplier.sweep();
      writer.sweep();
    } while (await pause(SWEEP_MS, signal));
  }
}

/** @param started resolves when the agent knows the cluster */
function partsOf(
  options: AgentOptions & { readonly locations: StateLocations },
  cache: ClusterCache,
  started: Promise<void>,
) {
  const { transport, nodeName, networks, logger, recordEvent, acknowledgeDeadlineMs } = options;
  const { view } = cache;
  const state = new NodeState(options.locations, logger);
  const registry = new ClientRegistry(state);
  const metrics: ClientMetrics = clientMetrics(options.metrics, {
    clients: () => registry.values().length,
    tombstones: () => state.tombstones().length,
    invalidEgresses: () => view.invalidEgresses,
    driftWatchUp: () => (driftWatch.check.ok ? 1 : 0),
  });
  const writer = new SliceWriter({
    client: new ResourceClient(transport, SLICE_RESOURCE, (raw) => EgressClientSlice.parse(raw)),
    ...{ nodeName, registry, view },
    reports: (reference) => reporter.reports(reference),
    seen: (reference) => cache.slice(reference),
  });
  const ask = askBy(options.prober, options.heartbeatPort);
  const heartbeats = new Heartbeats({
    gateways: () => gatewaysInUse(registry, view),
    beat: beatBy(options.prober, options.heartbeatPort),
    probe: (egress, address) => probeGateway(registry, networks, egress, address),
    onChange: (reference) => steerer.steer(registry.ofEgress(reference)),
    logger,
  });
  const reporter = new GatewayReporter({
    gateways: () => namedGatewaysInUse(registry, view),
    ...{ registry, view },
    pulse: (address) => heartbeats.pulse(address),
    onChange: (reference) => keeper.inspect(reference),
  });
  const withdrawals = new Withdrawals({ state, registry, slices: writer, view, ask, logger });
  const leftovers = new Leftovers({ registry, networks, logger });
  const lives = livesOf({ registry, networks, leftovers, withdrawals, logger });
  const shared = { registry, view, networks, withdrawals, lives, recordEvent, metrics, logger };
  const reapplier = new Reapplier(shared);
  const steerer = new Steerer({ ...shared, reapplier });
  const driftWatch = driftWatchOf({ ...shared, reapplier, steerer });
  const keeper = new SliceKeeper({ state, registry, writer, logger });
  const adder = new Adder({
    ...{ ...shared, state, slices: writer, ask },
    lookUpPod: podLookup(transport),
    reapply: (clients) => reapplier.reapply(clients),
    ...(acknowledgeDeadlineMs === undefined ? {} : { acknowledgeDeadlineMs }),
  });
  const requests = new RequestHandler({ ...shared, adder, reapplier, started });
  return {
    ...{ registry, steerer, reapplier, driftWatch, keeper, withdrawals, leftovers },
    ...{ requests, heartbeats, reporter, writer },
  };
}

function driftWatchOf(
  parts: Pick<DriftWatchOptions, "networks" | "metrics" | "logger"> & {
    readonly registry: ClientRegistry;
    readonly reapplier: Reapplier;
    readonly steerer: Steerer;
  },
): DriftWatch {
  const { registry, reapplier, steerer } = parts;
  // Whom an ADD still works on is left alone: a pod waits for it, and nobody else is in its namespace yet.
  const added = { values: () => registry.values().filter((one) => registry.phase(one) !== "adding") };
  return new DriftWatch({
    ...{ ...parts, registry: added },
    reapplier: {
      reapply: (clients) => reapplier.reapply(clients),
      get isIdle() {
        return reapplier.isIdle && steerer.isIdle;
      },
    },
  });
}
