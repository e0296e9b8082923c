/** What is done to gateways, nodes and programs. */

import { NODE_AGENT } from "@egress-nat/crds";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { RELEASE } from "../bed/workload/chart.ts";
import type { Kubectl } from "../bed/workload/kubectl.ts";
import { processesOf, programOf } from "../bed/workload/pod-processes.ts";
import { gatewaysOf, replicasIn } from "./ground.ts";
import { podsOf, type RunningPod } from "./pods.ts";
import type { Scene } from "./scene.ts";

/** Nodes without processor time take minutes for one pod after another. */
const REPLACEMENT_TIMEOUT_MS = 1_800_000;

export async function patchEgress({ ground }: Scene, spec: object): Promise<void> {
  const { namespace, name } = ground.egress;
  const patch = JSON.stringify({ spec });
  await ground.kubectl.run(["patch", "egress", name, "-n", namespace, "--type=merge", "-p", patch]);
}

/** Waits until so many gateways are there, apart from those that terminate, and all of them are as they should be. */
export async function untilGateways(
  { ground }: Scene,
  count: number,
  isWanted: (gateway: RunningPod) => boolean,
): Promise<void> {
  const areWanted = async () => {
    const remaining = (await gatewaysOf(ground)).filter(({ isTerminating }) => !isTerminating);
    return remaining.length === count && remaining.every(isWanted);
  };
  await waitUntil(areWanted, {
    what: `${count} gateways that replace those that were there`,
    timeoutMs: REPLACEMENT_TIMEOUT_MS,
    intervalMs: 1_000,
  });
}

/** kubectl waits until the last pod is gone, but the gateway stays as long as it has flows. */
export async function drain({ ground, node }: Scene): Promise<void> {
  const flags = ["--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=30s"];
  try {
    await ground.kubectl.run(["drain", node.name, ...flags]);
  } catch (error) {
    // It says the one or the other, by what it waits for when its time is over.
    if (!/global timeout reached|context deadline exceeded/.test(String(error))) throw error;
  }
}

/** Waits until all gateways are others. */
export function untilReplaced(scene: Scene, former: readonly string[]): Promise<void> {
  return untilGateways(
    scene,
    replicasIn(scene.ground.cluster),
    ({ name, isReady }) => isReady && !former.includes(name),
  );
}

export async function killGateway({ victim, node, mark }: Scene): Promise<void> {
  const pids = (await node.run(processesOf(victim.uid))).trim().split(/\s+/);
  await mark();
  // Killed alone they would leave a network namespace that goes on forwarding. Some have ended since, and some end with others.
  const cutOff = "nsenter --net=/proc/$pid/ns/net ip link set eth0 down";
  const all = pids.join(" ");
  await node.run(`for pid in ${all}; do ${cutOff} && break; done && { kill -KILL ${all} || true; }`);
}

/** Ends all agents, and has none start again. */
export async function stopAgents(kubectl: Kubectl): Promise<void> {
  await kubectl.run([...PATCH_AGENTS, selectNodes({ [NO_AGENTS]: "none" })]);
  await waitUntil(async () => (await programsOf(kubectl, "node-agent")).length === 0, {
    ...{ what: "the agents to end", timeoutMs: REPLACEMENT_TIMEOUT_MS, intervalMs: 1_000 },
  });
}

export async function startAgents(kubectl: Kubectl): Promise<void> {
  await kubectl.run([...PATCH_AGENTS, selectNodes({ [NO_AGENTS]: null })]);
}

/** Label that no node has. */
const NO_AGENTS = "chaos/agents";
const PATCH_AGENTS = ["patch", "daemonset", NODE_AGENT, "-n", RELEASE.namespace, "--type=merge", "-p"];

function selectNodes(nodeSelector: Readonly<Record<string, string | null>>): string {
  return JSON.stringify({ spec: { template: { spec: { nodeSelector } } } });
}

/** The pods of a component of the product. */
export function programsOf(kubectl: Kubectl, component: string): Promise<RunningPod[]> {
  return podsOf(kubectl, RELEASE.namespace, `app.kubernetes.io/component=${component}`);
}

export async function killPrograms({ ground, mark }: Scene, component: string): Promise<void> {
  const { cluster, kubectl } = ground;
  const pods = await programsOf(kubectl, component);
  const victims = await Promise.all(
    pods.map(async ({ uid, node }) => ({
      node: cluster.node(node),
      pids: await cluster.node(node).run(programOf(uid)),
    })),
  );
  await mark();
  await Promise.all(victims.map(({ node, pids }) => node.run(`kill -KILL ${pids}`)));
}
