import { createTransport, loadCredentials } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { runOperator } from "../bed/api/running-operator.ts";
import type { InstalledChart } from "./installed-chart.ts";

/** The operator in the test's own process, with the account and the rights that the chart gives it. */
export async function startOperator(chart: InstalledChart): Promise<AsyncDisposable> {
  const kubeconfig = await chart.withToken("egress-nat-operator", "operator");
  const logger = createLogger({ name: "test", level: "silent" });
  const transport = createTransport({ credentials: await loadCredentials({ kubeconfig }), logger });
  const operator = runOperator(transport, chart.namespace);
  return {
    async [Symbol.asyncDispose]() {
      await operator[Symbol.asyncDispose]();
      transport.close();
    },
  };
}
