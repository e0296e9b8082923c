import { setTimeout as sleep } from "node:timers/promises";
import { EGRESS_LABEL, labelValue } from "@egress-nat/crds";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { z } from "zod";
import { RELEASE } from "../../bed/workload/chart.ts";
import type { EgressName } from "../../bed/workload/manifests.ts";
import { programOf } from "../../bed/workload/pod-processes.ts";
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
  const gateways = ["-n", namespace, "-l", `${EGRESS_LABEL}=${labelValue(name)}`];
  await whileStopped(gateways, () => sleep(durationMs));
}

/** Does something while one gateway stands still. */
export async function whilePaused(
  namespace: string,
  gateway: string,
  work: () => Promise<void>,
): Promise<void> {
  await whileStopped(["-n", namespace, `--field-selector=metadata.name=${gateway}`], work);
}

async function whileStopped(pods: readonly string[], work: () => Promise<unknown>): Promise<void> {
  const states = await statesOf(pods);
  try {
    await signal("STOP", states);
    await work();
  } finally {
    await signal("CONT", states);
  }
}

async function signal(name: string, pods: ReadonlyMap<string, { readonly node: string }>): Promise<void> {
  await Promise.all(
    [...pods].map(async ([uid, { node }]) =>
      (await nodeOf({ node })).run(`kill -${name} $(${programOf(uid)})`),
    ),
  );
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
