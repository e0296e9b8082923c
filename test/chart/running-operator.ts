import { createTransport, loadCredentials } from "@egress-nat/kube";
import { EgressOperator, OperatorMetrics } from "@egress-nat/operator";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";
import type { InstalledChart } from "./installed-chart.ts";

/** The operator in the test's own process, with the account and the rights that the chart gives it. */
export async function startOperator(chart: InstalledChart): Promise<AsyncDisposable> {
  const kubeconfig = await chart.withToken("egress-nat-operator", "operator");
  const logger = createLogger({ name: "test", level: "silent" });
  const stop = new AbortController();
  const transport = createTransport({ credentials: await loadCredentials({ kubeconfig }), logger });
  const operator = new EgressOperator({
    transport,
    leaseTransport: transport,
    settings: {
      image: "egress-pod:1",
      imagePullPolicy: "Never",
      clusterRangesNamespace: chart.namespace,
      logLevel: "info",
    },
    maxConcurrentRollouts: 2,
    clusterNetworks: { configured: [], serviceAddresses: false },
    namespace: chart.namespace,
    identity: "operator-0",
    logger,
    metrics: new OperatorMetrics(new Registry()),
  });
  const running = operator.run(stop.signal);
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      transport.close();
    },
  };
}
