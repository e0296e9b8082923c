/** An operator in the test's own process, and what it writes. */

import type { RequestOptions, Transport } from "@egress-nat/kube";
import { Registry } from "prom-client";
import type { GatewaySettings } from "../egress/children/index.ts";
import { OperatorMetrics } from "../metrics.ts";
import { EgressOperator, type EgressOperatorOptions } from "../operator.ts";
import { silentLogger } from "./cluster.ts";
import { isWrite } from "./writes.ts";

export const SETTINGS: GatewaySettings = {
  image: "registry.example/egress-nat-egress-pod:1.0",
  imagePullPolicy: "IfNotPresent",
  clusterRangesNamespace: "egress-nat",
  logLevel: "info",
};

/** What a test wants otherwise. */
type Options = Partial<
  Pick<EgressOperatorOptions, "settings" | "gatewayHealthPort" | "leaseTransport" | "maxConcurrentRollouts">
>;

export class RunningOperator implements AsyncDisposable {
  /** "PATCH /apis/..." of everything that it wrote but leases and events. */
  readonly writes: string[] = [];
  readonly #stop = new AbortController();
  readonly #operator: EgressOperator;
  readonly #ended: Promise<void>;
  readonly #registry = new Registry();

  private constructor(transport: Transport, namespace: string, identity: string, options: Options) {
    this.#operator = new EgressOperator({
      transport: this.#recording(transport),
      leaseTransport: transport,
      ...{ settings: SETTINGS, maxConcurrentRollouts: 2, ...options },
      ...{ configuredRanges: [], serviceAddresses: true },
      namespace,
      identity,
      logger: silentLogger,
      metrics: new OperatorMetrics(this.#registry),
    });
    this.#ended = this.#operator.run(this.#stop.signal);
  }

  /** @param namespace where its Lease is: operators that share it are candidates for one lead */
  static start(
    transport: Transport,
    namespace: string,
    identity = "operator-0",
    options: Options = {},
  ): RunningOperator {
    return new RunningOperator(transport, namespace, identity, options);
  }

  /** By its own word: what its metric says. */
  get isLeading(): boolean {
    return this.#operator.isLeading;
  }

  get isReady(): boolean {
    return this.#operator.ready().ok;
  }

  get reasonsNotReady(): readonly string[] {
    return this.#operator.ready().reasons;
  }

  /** The samples of a gauge or a counter: labels and value. */
  async metric(name: string): Promise<Readonly<Record<string, string | number>>[]> {
    const metric = await this.#registry.getSingleMetric(name)?.get();
    return (metric?.values ?? []).map(({ labels, value }) => ({ ...labels, value }));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #recording(transport: Transport): Transport {
    return {
      request: <T>(options: RequestOptions) => {
        if (isWrite(options)) this.writes.push(`${options.method} ${options.path}`);
        return transport.request<T>(options);
      },
      stream: (options) => transport.stream(options),
      close: () => transport.close(),
    };
  }
}
