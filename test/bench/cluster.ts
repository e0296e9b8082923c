import { type Cluster, removeCluster } from "../bed/cluster/cluster.ts";
import { upOneNode } from "../bed/cluster/one-node.ts";
import { installChart } from "../bed/workload/chart.ts";
import { Kubectl } from "../bed/workload/kubectl.ts";
import { Cleanup } from "./cleanup.ts";
import { progress } from "./progress.ts";

const NAME = "bench";

type Measurement<T> = (cluster: Cluster, kubectl: Kubectl) => Promise<T>;

/** Brings up a cluster of one node with the product installed, for one measurement. */
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
  await removeCluster(name);
  await using _cluster = new Cleanup(() => removeCluster(name));
  const cluster = await up();
  await installChart(cluster);
  return await measure(cluster, new Kubectl(cluster.kubectlCommand));
}
