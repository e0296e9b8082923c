import type { Transport } from "@egress-nat/kube";
import { EgressOperator, OperatorMetrics } from "@egress-nat/operator";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";

/**
 * Runs the operator in the test's own process until it is disposed of.
 *
 * @param namespace the product's
 */
export function runOperator(transport: Transport, namespace: string): AsyncDisposable {
  const stop = new AbortController();
  const operator = new EgressOperator({
    transport,
    leaseTransport: transport,
    settings: {
      image: "egress-pod:1",
      imagePullPolicy: "Never",
      clusterRangesNamespace: namespace,
      logLevel: "info",
    },
    maxConcurrentRollouts: 2,
    configuredRanges: [],
    serviceAddresses: false,
    namespace,
    identity: "operator-0",
    logger: createLogger({ name: "test", level: "silent" }),
    metrics: new OperatorMetrics(new Registry()),
  });
  const running = operator.run(stop.signal);
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
