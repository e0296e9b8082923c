/** An operator in the test's own process, and what it writes. */

import type { RequestOptions, Transport } from "@egress-nat/kube";
import { Registry } from "prom-client";
import type { GatewaySettings } from "../egress/children/index.ts";
import { OperatorMetrics } from "../metrics.ts";
import { EgressOperator } from "../operator.ts";
import { silentLogger } from "./cluster.ts";
import { isWrite } from "./writes.ts";

const SETTINGS: GatewaySettings = {
  image: "registry.example/egress-nat-egress-pod:1.0",
  imagePullPolicy: "IfNotPresent",
  clusterRangesNamespace: "egress-nat",
  logLevel: "info",
};

export class RunningOperator implements AsyncDisposable {
  /** "PATCH /apis/..." of everything that it wrote but leases and events. */
  readonly writes: string[] = [];
  readonly #stop = new AbortController();
  readonly #operator: EgressOperator;
  readonly #ended: Promise<void>;

  private constructor(transport: Transport, namespace: string, identity: string) {
    this.#operator = new EgressOperator({
      transport: this.#recording(transport),
      settings: SETTINGS,
      clusterNetworks: { configured: [], serviceAddresses: true },
      namespace,
      identity,
      logger: silentLogger,
      metrics: new OperatorMetrics(new Registry()),
    });
    this.#ended = this.#operator.run(this.#stop.signal);
  }

  /** @param namespace where its Lease is: operators that share it are candidates for one lead */
  static start(transport: Transport, namespace: string, identity = "operator-0"): RunningOperator {
    return new RunningOperator(transport, namespace, identity);
  }

  get isReady(): boolean {
    return this.#operator.ready().ok;
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
