import { hostname } from "node:os";
import {
  API_GROUP,
  EGRESS_RESOURCE,
  FOU_PORT,
  GatewayEnvironment,
  HEALTH_PORTS,
  HEARTBEAT_PORT,
} from "@egress-nat/crds";
import {
  Gateway,
  GatewayWatch,
  HeartbeatProber,
  HeartbeatResponder,
  kernelHere,
  liveFlows,
} from "@egress-nat/founat";
import { createTransport, EventRecorder, loadCredentials, regarding } from "@egress-nat/kube";
import { createRegistry, HealthServer, parseEnvironment, runProgram } from "@egress-nat/program";
import { EgressPod } from "./egress-pod.ts";
import { Metrics } from "./metrics.ts";
import { askUplinksBy } from "./uplink/others.ts";
import { ping } from "./uplink/ping.ts";

/** To read and write the elements of ten thousand clients takes nft a second, and on a slow machine many. */
const SILENCE_MS = 300_000;

await runProgram("egress-pod", async ({ signal: terminated, logger: root }) => {
  const { EGRESS_NAMESPACE, EGRESS_NAME, POD_IPS, CLUSTER_RANGES_NAMESPACE, DRAIN_TIMEOUT_SECONDS } =
    parseEnvironment(GatewayEnvironment);
  const logger = root.child({ egress: `${EGRESS_NAMESPACE}/${EGRESS_NAME}` });
  const registry = createRegistry();
  const kernel = kernelHere({ silenceMs: SILENCE_MS });
  const transport = createTransport({
    credentials: await loadCredentials(),
    logger,
    userAgent: "egress-nat-egress-pod",
  });

  const events = new EventRecorder({
    transport,
    component: `${API_GROUP}/gateway`,
    instance: hostname(),
    logger,
  });
  const prober = new HeartbeatProber();
  const pod = new EgressPod({
    egress: { namespace: EGRESS_NAMESPACE, name: EGRESS_NAME },
    clusterRangesNamespace: CLUSTER_RANGES_NAMESPACE,
    drainSeconds: DRAIN_TIMEOUT_SECONDS,
    transport,
    addresses: POD_IPS,
    createGateway: (config) => new Gateway(config, { kernel, logger }),
    liveFlows: () => liveFlows(kernel),
    watchKernel: (watch, signal) => new GatewayWatch({ port: FOU_PORT, logger, ...watch }).run(signal),
    ping,
    askUplinks: askUplinksBy(prober),
    recordEvent: (egress, event) =>
      events.record({ regarding: regarding(EGRESS_RESOURCE, egress), ...event }),
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
    value: (key) => pod.heartbeat(key),
  });

  await health.start();
  await heartbeat.listen();
  const stop = new AbortController();
  const terminate = () => void pod.drain().then(() => stop.abort());
  if (terminated.aborted) terminate();
  terminated.addEventListener("abort", terminate);
  await pod.run(stop.signal);

  await heartbeat.close();
  await prober.close();
  await health.close();
  await events.close();
  transport.close();
});
