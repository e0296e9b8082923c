import { RELEASE } from "../../workload/chart.ts";
import { kubectl } from "./world.ts";

const AGENTS = ["daemonset/egress-nat-node-agent", "-n", RELEASE.namespace] as const;
const ABSENT = { spec: { template: { spec: { nodeSelector: { "e2e/no-such-node": "true" } } } } };
const PRESENT = { spec: { template: { spec: { nodeSelector: { "e2e/no-such-node": null } } } } };

/** Takes the node agents away from all nodes while a function runs; they are back and ready when it has ended. */
export async function withoutNodeAgents(during: () => Promise<void>): Promise<void> {
  await kubectl.run(["patch", ...AGENTS, "--type=merge", "-p", JSON.stringify(ABSENT)]);
  try {
    await kubectl.run(["wait", "--for=delete", "pods", ...podsOf("node-agent"), "--timeout=120s"]);
    await during();
  } finally {
    await kubectl.run(["patch", ...AGENTS, "--type=merge", "-p", JSON.stringify(PRESENT)]);
    await nodeAgentsReady();
  }
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
