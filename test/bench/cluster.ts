import { type Cluster, removeCluster } from "../cluster/cluster.ts";
import { upOneNode } from "../cluster/one-node.ts";
import { installChart } from "../workload/chart.ts";
import { Kubectl } from "../workload/kubectl.ts";
import { progress } from "./progress.ts";

const NAME = "bench";

/** Brings up a cluster of one node with the product installed, for one measurement. */
export async function withCluster<T>(
  measure: (cluster: Cluster, kubectl: Kubectl) => Promise<T>,
): Promise<T> {
  progress("a cluster of one node comes up, with the chart installed");
  await removeCluster(NAME);
  try {
    const cluster = await upOneNode(NAME);
    await installChart(cluster);
    return await measure(cluster, new Kubectl(cluster.kubectlCommand));
  } finally {
    await removeCluster(NAME);
  }
}
