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
export function withCluster<T>(measure: Measurement<T>): Promise<T> {
  progress("a cluster of one node comes up, with the chart installed");
  return withClusterOf(NAME, () => upOneNode(NAME), measure);
}

/**
 * As {@link withCluster}, for a cluster of another kind.
 *
 * @param up brings up the cluster of that name
 */
export async function withClusterOf<T>(
  name: string,
  up: () => Promise<Cluster>,
  measure: Measurement<T>,
): Promise<T> {
  const interruption = Promise.withResolvers<never>();
  const interrupt = (signal: NodeJS.Signals) =>
    interruption.reject(new ToolError("interrupted", `ended by ${signal}`));
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    await removeCluster(name);
    const measured = up().then(async (cluster) => {
      await installChart(cluster);
      return await measure(cluster, new Kubectl(cluster.kubectlCommand));
    });
    return await Promise.race([measured, interruption.promise]);
  } finally {
    // Listened to until here: a Ctrl-C arrives twice, from the terminal and from npm.
    await removeCluster(name);
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}
