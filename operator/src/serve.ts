/** `serve`: the operator as a program. */

import { HEALTH_PORTS } from "@egress-nat/crds";
import { createTransport, loadCredentials } from "@egress-nat/kube";
import { createRegistry, HealthServer, type ProgramContext, parseEnvironment } from "@egress-nat/program";
import { Configuration } from "./configuration.ts";
import { OperatorMetrics } from "./metrics.ts";
import { EgressOperator } from "./operator.ts";

export async function serve({ signal, logger }: ProgramContext): Promise<void> {
  const configuration = parseEnvironment(Configuration);
  const transport = createTransport({
    credentials: await loadCredentials(),
    logger,
    userAgent: "egress-nat-operator",
  });
  const registry = createRegistry();
  const operator = new EgressOperator({
    transport,
    settings: {
      image: configuration.EGRESS_POD_IMAGE,
      imagePullPolicy: configuration.EGRESS_POD_IMAGE_PULL_POLICY,
      clusterRanges: configuration.CLUSTER_RANGES,
      logLevel: configuration.LOG_LEVEL,
    },
    namespace: configuration.POD_NAMESPACE,
    identity: configuration.POD_NAME,
    logger,
    metrics: new OperatorMetrics(registry),
  });
  const health = new HealthServer({
    port: HEALTH_PORTS.operator,
    logger,
    registry,
    ready: () => operator.ready(),
  });
  await health.start();
  try {
    await operator.run(signal);
  } finally {
    await health.close();
    transport.close();
  }
}
