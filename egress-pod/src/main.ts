import { HEALTH_PORTS, HEARTBEAT_PORT } from "@egress-nat/crds";
import { Gateway, HeartbeatResponder, kernelHere } from "@egress-nat/founat";
import { createTransport, loadCredentials } from "@egress-nat/kube";
import { createRegistry, HealthServer, parseEnvironment, runProgram } from "@egress-nat/program";
import { EgressPod } from "./egress-pod.ts";
import { Environment } from "./environment.ts";
import { Metrics } from "./metrics.ts";

await runProgram("egress-pod", async ({ signal: terminated, logger: root }) => {
  const { EGRESS_NAMESPACE, EGRESS_NAME, CLUSTER_RANGES_NAMESPACE } = parseEnvironment(Environment);
  const logger = root.child({ egress: `${EGRESS_NAMESPACE}/${EGRESS_NAME}` });
  const registry = createRegistry();
  const kernel = kernelHere();
  const transport = createTransport({
    credentials: await loadCredentials(),
    logger,
    userAgent: "egress-nat-egress-pod",
  });

  const pod = new EgressPod({
    egress: { namespace: EGRESS_NAMESPACE, name: EGRESS_NAME },
    clusterRangesNamespace: CLUSTER_RANGES_NAMESPACE,
    transport,
    createGateway: (config) => new Gateway(config, { kernel, logger }),
    logger,
    metrics: new Metrics(registry),
  });
  const health = new HealthServer({
    port: HEALTH_PORTS.egressPod,
    logger,
    registry,
    ready: () => pod.ready(),
  });
  const heartbeat = new HeartbeatResponder({
    port: HEARTBEAT_PORT,
    value: (sliceUid) => pod.appliedGeneration(sliceUid),
  });

  await health.start();
  await heartbeat.listen();
  const stop = new AbortController();
  const terminate = () => void pod.drain().then(() => stop.abort());
  if (terminated.aborted) terminate();
  terminated.addEventListener("abort", terminate);
  await pod.run(stop.signal);

  await heartbeat.close();
  await health.close();
  transport.close();
});
