/** `serve`: the operator as a program. */

import { OPERATOR } from "@egress-nat/crds";
import { createTransport, loadCredentials, type SentRequest } from "@egress-nat/kube";
import { createRegistry, HealthServer, type ProgramContext, parseEnvironment } from "@egress-nat/program";
import { Configuration } from "./configuration.ts";
import { OperatorMetrics } from "./metrics.ts";
import { EgressOperator } from "./operator.ts";

export async function serve({ signal, logger }: ProgramContext): Promise<void> {
  const configuration = parseEnvironment(Configuration);
  const registry = createRegistry();
  const metrics = new OperatorMetrics(registry);
  const transportOptions = {
    credentials: await loadCredentials(),
    logger,
    userAgent: OPERATOR,
    onRequest: (request: SentRequest) => metrics.requested(request),
  };
  const transport = createTransport(transportOptions);
  const leaseTransport = createTransport(transportOptions);
  const operator = new EgressOperator({
    transport,
    leaseTransport,
    settings: {
      image: configuration.EGRESS_POD_IMAGE,
      imagePullPolicy: configuration.EGRESS_POD_IMAGE_PULL_POLICY,
      clusterRangesNamespace: configuration.POD_NAMESPACE,
      logLevel: logger.level,
    },
    maxConcurrentRollouts: configuration.MAX_CONCURRENT_ROLLOUTS,
    configuredRanges: configuration.CLUSTER_RANGES,
    serviceAddresses: configuration.SERVICE_ADDRESSES_IN_CLUSTER,
    namespace: configuration.POD_NAMESPACE,
    identity: configuration.POD_NAME,
    logger,
    metrics,
  });
  const health = new HealthServer({
    port: configuration.HEALTH_PORT,
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
    leaseTransport.close();
  }
}
