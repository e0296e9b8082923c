import { ToolError } from "@egress-nat/tools/system/tool-error";
import { type Cluster, removeCluster } from "../bed/cluster/cluster.ts";
import { upOneNode } from "../bed/cluster/one-node.ts";
import { installChart } from "../bed/workload/chart.ts";
import { Kubectl } from "../bed/workload/kubectl.ts";
import { progress } from "./progress.ts";

const NAME = "bench";
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

type Measurement<T> = (cluster: Cluster, kubectl: Kubectl) => Promise<T>;

/**
 * Brings up a cluster of one node with the product installed, for one measurement.
 *
 * @throws ToolError `interrupted` after SIGINT or SIGTERM; the cluster is gone then
 */
export async function withCluster<T>(measure: Measurement<T>): Promise<T> {
  progress("a cluster of one node comes up, with the chart installed");
  const interruption = Promise.withResolvers<never>();
  const interrupt = (signal: NodeJS.Signals) =>
    interruption.reject(new ToolError("interrupted", `ended by ${signal}`));
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    return await Promise.race([measureInside(measure), interruption.promise]);
  } finally {
    // Listened to until here: a Ctrl-C arrives twice, from the terminal and from npm.
    await removeCluster(NAME);
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

async function measureInside<T>(measure: Measurement<T>): Promise<T> {
  await removeCluster(NAME);
  const cluster = await upOneNode(NAME);
  await installChart(cluster);
  return await measure(cluster, new Kubectl(cluster.kubectlCommand));
}
