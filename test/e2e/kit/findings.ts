import { EGRESS_LABEL } from "@egress-nat/crds";
import { RELEASE } from "../../bed/workload/chart.ts";
import type { Kubectl } from "../../bed/workload/kubectl.ts";
import { INTERNET_EGRESS, OFFICE_EGRESS } from "./names.ts";

/** What a person would look at first on a cluster where something does not get ready. */
const QUESTIONS = [
  ["get", "nodes,deployments,daemonsets,pods,services,endpointslices", "--all-namespaces", "-o", "wide"],
  ["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"],
  ["get", "egresses,egressclientslices", "--all-namespaces", "-o", "yaml"],
  ["get", "configmaps", `--namespace=${RELEASE.namespace}`, "-o", "yaml"],
  logs(RELEASE.namespace, "app.kubernetes.io/part-of=egress-nat"),
  logs(INTERNET_EGRESS.namespace, EGRESS_LABEL),
  logs(OFFICE_EGRESS.namespace, EGRESS_LABEL),
];

/** Does something, and prints what the cluster says of itself where that fails. */
export async function orFindings(kubectl: Kubectl, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    for (const question of QUESTIONS) {
      const answer = await kubectl.run(question).catch((reason: unknown) => String(reason));
      console.error(`kubectl ${question.join(" ")}\n${answer}\n`);
    }
    throw error;
  }
}

function logs(namespace: string, selector: string): string[] {
  return [
    ...["logs", `--namespace=${namespace}`, `--selector=${selector}`],
    ...["--all-containers", "--prefix", "--tail=300", "--ignore-errors"],
  ];
}
