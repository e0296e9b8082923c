import { setTimeout as sleep } from "node:timers/promises";
import { EGRESS_LABEL, labelValue } from "@egress-nat/crds";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { z } from "zod";
import { RELEASE } from "../../bed/workload/chart.ts";
import type { EgressName } from "../../bed/workload/manifests.ts";
import { kubectl, nodeOf } from "./world.ts";

const AGENTS = ["daemonset/egress-nat-node-agent", "-n", RELEASE.namespace] as const;
const ABSENT = { spec: { template: { spec: { nodeSelector: { "e2e/no-such-node": "true" } } } } };
const PRESENT = { spec: { template: { spec: { nodeSelector: { "e2e/no-such-node": null } } } } };

/** Takes the node agents away from all nodes, until {@link bringBackNodeAgents}. */
export async function takeAwayNodeAgents(): Promise<void> {
  await kubectl.run(["patch", ...AGENTS, "--type=merge", "-p", JSON.stringify(ABSENT)]);
  await kubectl.run(["wait", "--for=delete", "pods", ...podsOf("node-agent"), "--timeout=120s"]);
}

/** Returns when the node agents are ready. */
export async function bringBackNodeAgents(): Promise<void> {
  await kubectl.run(["patch", ...AGENTS, "--type=merge", "-p", JSON.stringify(PRESENT)]);
  await nodeAgentsReady();
}

export async function nodeAgentsReady(): Promise<void> {
  await kubectl.run(["rollout", "status", ...AGENTS, "--timeout=180s"], { timeoutMs: 200_000 });
}

export async function operatorReady(): Promise<void> {
  const deployment = ["deployment/egress-nat-operator", "-n", RELEASE.namespace];
  await kubectl.run(["rollout", "status", ...deployment, "--timeout=180s"], { timeoutMs: 200_000 });
}

type Program = "node-agent" | "operator";

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ uid: z.string() }),
      spec: z.object({ nodeName: z.string() }),
      status: z.object({
        containerStatuses: z.array(z.object({ restartCount: z.int(), ready: z.boolean() })).default([]),
      }),
    }),
  ),
});

/** Kills all processes of one of the product's programs with SIGKILL, and waits until the kubelets' new ones are ready. */
export async function killProcesses(program: Program): Promise<void> {
  const victims = await statesOf(podsOf(program));
  await signal("KILL", victims);
  const areBack = async () => {
    const states = await statesOf(podsOf(program));
    return [...victims].every(([uid, { restarts }]) => {
      const state = states.get(uid);
      return state !== undefined && state.restarts > restarts && state.ready;
    });
  };
  await waitUntil(areBack, { what: `${program} after SIGKILL`, timeoutMs: 180_000, intervalMs: 1000 });
}

/** Has the gateways of an Egress stand still: their programs answer nobody, their kernels forward. */
export async function pauseGateways({ namespace, name }: EgressName, durationMs: number): Promise<void> {
  const gateways = await statesOf(["-n", namespace, "-l", `${EGRESS_LABEL}=${labelValue(name)}`]);
  try {
    await signal("STOP", gateways);
    await sleep(durationMs);
  } finally {
    await signal("CONT", gateways);
  }
}

async function signal(name: string, pods: ReadonlyMap<string, { readonly node: string }>): Promise<void> {
  await Promise.all(
    [...pods].map(async ([uid, { node }]) => (await nodeOf({ node })).run(signalPod(name, uid))),
  );
}

/**
 * A script that sends a signal to the program of a pod, which its cgroup names; the sandbox stays. One grep reads the
 * files of all processes: on a busy emulated node one for each takes half a minute. It fails over those that end
 * meanwhile.
 */
function signalPod(name: string, uid: string): string {
  return `
    cd /proc
    in_pod=$(grep -ls 'pod${uid.replaceAll("-", "[-_]")}' [0-9]*/cgroup) || true
    programs=$(grep -ls /app/main.js /dev/null \${in_pod//cgroup/cmdline}) || true
    kill -${name} \${programs//\\/cmdline/}`;
}

/** How pods are, by their uids. */
async function statesOf(pods: readonly string[]) {
  const { items } = await kubectl.get(Pods, "pods", ...pods);
  return new Map(
    items.map(({ metadata, spec, status }) => {
      const [container] = status.containerStatuses;
      return [
        metadata.uid,
        { node: spec.nodeName, restarts: container?.restartCount ?? 0, ready: container?.ready ?? false },
      ];
    }),
  );
}

/** The pods of a program, as arguments of kubectl. */
export function podsOf(program: Program): string[] {
  return ["-n", RELEASE.namespace, "-l", `app.kubernetes.io/component=${program}`];
}
