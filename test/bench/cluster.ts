import { type Cluster, removeCluster } from "../cluster/cluster.ts";
import { upCluster } from "../cluster/up.ts";
import { imageTarballs } from "../images/index.ts";
import { installChart } from "../workload/chart.ts";
import { Kubectl } from "../workload/kubectl.ts";

const NAME = "bench";

/** Brings up a cluster of one node with the product installed, for one measurement. */
export async function withCluster<T>(
  measure: (cluster: Cluster, kubectl: Kubectl) => Promise<T>,
): Promise<T> {
  await removeCluster(NAME);
  try {
    const cluster = await upCluster({
      name: NAME,
      nodes: 1,
      ranges: "private",
      proxyMode: "nftables",
      lifetime: "owner",
      images: imageTarballs,
      renderer: "silent",
    });
    await installChart(cluster);
    return await measure(cluster, new Kubectl(cluster.kubectlCommand));
  } finally {
    await removeCluster(NAME);
  }
}
