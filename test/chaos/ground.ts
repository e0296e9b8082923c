/** Where scenarios take place: an Egress with a gateway for each node of a cluster, and clients on all nodes but the last. */

import { EGRESS_LABEL, labelValue } from "@egress-nat/crds";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import type { Cluster } from "../bed/cluster/cluster.ts";
import { upOwned } from "../bed/cluster/one-node.ts";
import type { ProxyMode } from "../bed/cluster/plan.ts";
import { netnsPath } from "../bed/system/network-namespace.ts";
import { BackgroundProcess } from "../bed/system/process.ts";
import { RELEASE } from "../bed/workload/chart.ts";
import { gatewaysReady } from "../bed/workload/gateways.ts";
import type { Kubectl } from "../bed/workload/kubectl.ts";
import { clientOf, type EgressName, egress, namespace, programPod } from "../bed/workload/manifests.ts";
import { withClusterOf } from "../bench/cluster.ts";
import { progress } from "../bench/progress.ts";
import { LOAD_IMAGE, loadImage, loadProgram } from "./load-program.ts";
import { podsOf, type RunningPod } from "./pods.ts";

const CLUSTER = "chaos";
const SERVER = "chaos-serve";
export const NAMESPACE = "chaos";
const CLIENT_LABEL = "chaos/client";
/** Longer than any scenario: what a drain breaks after its time is over is not what is measured. */
const DRAIN_SECONDS = 1_800;
const PATIENCE_MS = 1_800_000;
/** On an emulated node; more would leave no room for the gateways of a rollout. */
const GATEWAY_REQUESTS = { cpu: "100m" };

export type Selection = "Agent" | "Service";

export interface Ground {
  readonly cluster: Cluster;
  readonly kubectl: Kubectl;
  readonly selection: Selection;
  readonly egress: EgressName;
  /** On all nodes but the last. */
  readonly clients: readonly RunningPod[];
}

/** Brings up the cluster, with the server of load/serve.go in its internet, and takes it away again. */
export function withChaosCluster<T>(
  proxyMode: ProxyMode,
  work: (cluster: Cluster, kubectl: Kubectl) => Promise<T>,
): Promise<T> {
  progress("a cluster of three nodes comes up, with the chart installed");
  const up = () => upOwned(CLUSTER, 3, { proxyMode });
  return withClusterOf(CLUSTER, up, async (cluster, kubectl) => {
    await prepare(cluster, kubectl);
    return work(cluster, kubectl);
  });
}

/** Gives a cluster what loads need, which goes with it: their image, their server, and a namespace. */
export async function prepare(cluster: Cluster, kubectl: Kubectl): Promise<void> {
  await cluster.loadImages([await loadImage()]);
  const { internet, folder } = cluster.plan;
  const server = await BackgroundProcess.start({
    name: SERVER,
    folder,
    lifetime: "owner",
    netns: netnsPath(internet.netns),
    command: [await loadProgram(), "serve", internet.wide.ipv4, internet.wide.ipv6],
  });
  await waitUntil(async () => (await server.log()).includes("ready"), {
    what: "the server of the load",
    timeoutMs: 10_000,
    explain: () => server.failure("is not ready").message,
  });
  await kubectl.apply(namespace(NAMESPACE));
}

/** The server of the load; its log has what intruders have got through. */
export function serverOf({ plan: { folder } }: Cluster): BackgroundProcess {
  return new BackgroundProcess(folder, SERVER);
}

/** How many gateways there are, as long as a scenario does not change that. */
export function replicasIn(cluster: Cluster): number {
  return cluster.nodes.length;
}

/** Makes an Egress and its clients. */
export async function makeGround(cluster: Cluster, kubectl: Kubectl, selection: Selection): Promise<Ground> {
  const replicas = replicasIn(cluster);
  progress(`${selection} selection: ${replicas} gateways and their clients start`);
  const name: EgressName = { namespace: NAMESPACE, name: selection.toLowerCase() };
  const { wide } = cluster.plan.internet;
  const object = egress(name, {
    destinations: ["0.0.0.0/0", "::/0"],
    replicas,
    gatewaySelection: selection,
    // The flows of each client have all gateways. With Service selection they do if their source ports differ.
    sessionAffinity: "None",
    fouSourcePortAuto: selection === "Service",
    drainTimeoutSeconds: DRAIN_SECONDS,
    uplinkProbe: { targets: [wide.ipv4, wide.ipv6] },
    template: { spec: { containers: [{ name: "egress", resources: { requests: GATEWAY_REQUESTS } }] } },
  });
  const pods = cluster.nodes.slice(0, -1).map((node) =>
    programPod(
      {
        name: `${name.name}-client-${node.name}`,
        namespace: NAMESPACE,
        image: LOAD_IMAGE,
        node: node.name,
        annotations: clientOf(name),
        labels: { [CLIENT_LABEL]: name.name },
      },
      ["wait"],
    ),
  );
  await kubectl.apply(object);
  await gatewaysReady(kubectl, name);
  await kubectl.apply(...pods);
  const selector = `${CLIENT_LABEL}=${name.name}`;
  await kubectl.wait(["pods", "-n", NAMESPACE, "-l", selector], "condition=Ready", PATIENCE_MS);
  return {
    ...{ cluster, kubectl, selection, egress: name },
    clients: await podsOf(kubectl, NAMESPACE, selector),
  };
}

/** Takes it away again. */
export async function removeGround(ground: Ground): Promise<void> {
  const { kubectl, egress, clients } = ground;
  await kubectl.run(["delete", "pods", "-n", NAMESPACE, ...clients.map(({ name }) => name)]);
  await kubectl.run(["delete", "egress", egress.name, "-n", egress.namespace, "--wait=false"]);
  await end(ground, await gatewaysOf(ground));
}

/** The gateways, terminating ones as well. */
export function gatewaysOf({
  kubectl,
  egress: { namespace, name },
}: Pick<Ground, "kubectl" | "egress">): Promise<RunningPod[]> {
  return podsOf(kubectl, namespace, `${EGRESS_LABEL}=${labelValue(name)}`);
}

/**
 * Waits until the product is as it was made: all agents and the operator ready, and a gateway on each node that all agents
 * hear. Gateways that still terminate, and second ones of a node, are ended.
 *
 * @returns the gateway on the node that has no client: what is done to it or to its node is not done to a client
 */
export async function untilWhole(ground: Ground): Promise<RunningPod> {
  const { kubectl, cluster } = ground;
  for (const workload of ["daemonset/egress-nat-node-agent", "deployment/egress-nat-operator"]) {
    const status = ["rollout", "status", workload, "-n", RELEASE.namespace];
    await kubectl.run([...status, `--timeout=${PATIENCE_MS / 1000}s`], { timeoutMs: PATIENCE_MS });
  }
  return waitUntil(
    async () => {
      const gateways = await gatewaysOf(ground);
      const remaining = gateways.filter(({ isTerminating }) => !isTerminating);
      const isDouble = ({ node }: RunningPod, index: number) =>
        remaining.findIndex((other) => other.node === node) < index;
      const surplus = [
        ...gateways.filter(({ isTerminating }) => isTerminating),
        ...(remaining.every(({ isReady }) => isReady) ? remaining.filter(isDouble) : []),
      ];
      await end(ground, surplus);
      const isWhole =
        surplus.length === 0 && remaining.filter(({ isReady }) => isReady).length === replicasIn(cluster);
      if (!isWhole || !(await areHeard(ground))) return undefined;
      return remaining.find(({ node }) => node === cluster.nodes.at(-1)?.name);
    },
    { what: "a ready gateway on each node", timeoutMs: PATIENCE_MS, intervalMs: 2_000 },
  );
}

/** Whether agents hear all gateways: to one that was away clients have no tunnel at first, and so no flow. */
async function areHeard({ kubectl, egress }: Ground): Promise<boolean> {
  const object = ["egress", egress.name, "-n", egress.namespace];
  const states = await kubectl.run(["get", ...object, "-o=jsonpath={.status.gateways[*].state}"]);
  return states.split(" ").every((state) => state === "Ready");
}

/** Ends gateways at once, without a drain. */
async function end({ kubectl, egress }: Ground, gateways: readonly RunningPod[]): Promise<void> {
  if (gateways.length === 0) return;
  const names = gateways.map(({ name }) => name);
  await kubectl.run([
    ...["delete", "pods", ...names, "-n", egress.namespace],
    ...["--force", "--grace-period=0", "--ignore-not-found", "--wait=false"],
  ]);
}
