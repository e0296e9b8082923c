/** `serve`: the node agent as a program. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { API_GROUP, CNI_PLUGIN, HEALTH_PORTS, NODE_AGENT } from "@egress-nat/crds";
import { HeartbeatProber } from "@egress-nat/founat";
import {
  createTransport,
  EventRecorder,
  loadCredentials,
  NODE_RESOURCE,
  ResourceClient,
} from "@egress-nat/kube";
import { createRegistry, HealthServer, type ProgramContext, parseEnvironment } from "@egress-nat/program";
import type { RecordPodEvent } from "../client/pod.ts";
import { Agent } from "./agent.ts";
import { AgentEnvironment } from "./environment.ts";
import { installBinary } from "./installer/binary.ts";
import { ConfigurationDirectory } from "./installer/configuration-directory.ts";
import { Installer } from "./installer/installer.ts";
import { installerMetrics } from "./installer/metrics.ts";
import { nodeEvents } from "./installer/node-events.ts";
import { KernelPodNetworks } from "./netns.ts";
import { removeStartupTaint, TaintedNode } from "./startup-taint.ts";

/** In the image the plugin lies in a folder beside the bundle: see the Dockerfile. */
const PLUGIN = fileURLToPath(new URL(`./cni/${CNI_PLUGIN}`, import.meta.url));

export async function serve({ signal, logger }: ProgramContext): Promise<void> {
  const environment = parseEnvironment(AgentEnvironment);
  const transport = createTransport({
    credentials: await loadCredentials(),
    logger,
    userAgent: NODE_AGENT,
  });
  const registry = createRegistry();
  const events = new EventRecorder({
    transport,
    component: `${API_GROUP}/node-agent`,
    instance: environment.POD_NAME,
    logger,
  });
  const recordEvent: RecordPodEvent = (pod, event) =>
    events.record({ regarding: { apiVersion: "v1", kind: "Pod", ...pod }, action: "AddClient", ...event });
  const prober = new HeartbeatProber();
  const agent = new Agent({
    nodeName: environment.NODE_NAME,
    zone: environment.NODE_ZONE,
    namespace: environment.POD_NAMESPACE,
    networks: new KernelPodNetworks(logger),
    metrics: registry,
    ...{ transport, prober, recordEvent, logger },
  });
  const installer = new Installer({
    installBinary: () => installBinary(PLUGIN, join(environment.CNI_BIN_DIR, CNI_PLUGIN)),
    configuration: new ConfigurationDirectory(environment.CNI_CONF_DIR),
    directories: [environment.CNI_BIN_DIR, environment.CNI_CONF_DIR],
    recordEvent: nodeEvents(events, environment.NODE_NAME),
    metrics: installerMetrics(registry),
    logger,
  });
  const ready = () => {
    const checks = [agent.check, installer.check];
    return { ok: checks.every(({ ok }) => ok), reasons: checks.flatMap(({ reasons }) => reasons) };
  };
  const key = environment.STARTUP_TAINT;
  const nodes = new ResourceClient(transport, NODE_RESOURCE, (raw) => TaintedNode.parse(raw));
  const taint = { nodes, nodeName: environment.NODE_NAME, ready, logger };
  const host = environment.HEALTH_ADDRESS;
  const health = new HealthServer({
    port: HEALTH_PORTS.nodeAgent,
    ...(host !== undefined && { host }),
    ...{ logger, registry, ready },
  });
  await health.start();
  try {
    await Promise.all([
      agent.run(signal),
      installer.run(signal),
      key !== undefined && removeStartupTaint({ ...taint, key }, signal),
    ]);
  } finally {
    await Promise.all([health.close(), prober.close(), events.close()]);
    transport.close();
  }
}
