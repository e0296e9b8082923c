import { RELEASE } from "../../workload/chart.ts";
import { kubectl } from "./world.ts";

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

/** Ends the pods of one of the product's programs without giving them time; what owns them starts new ones. */
export async function killPods(program: "node-agent" | "operator"): Promise<void> {
  await kubectl.run(["delete", "pods", ...podsOf(program), "--grace-period=0", "--force"]);
}

function podsOf(program: "node-agent" | "operator"): string[] {
  return ["-n", RELEASE.namespace, "-l", `app.kubernetes.io/component=${program}`];
}
