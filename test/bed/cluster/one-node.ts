import { imageTarballs } from "@egress-nat/tools/images";
import type { Cluster } from "./cluster.ts";
import { type UpOptions, upCluster } from "./up.ts";

/** Brings up a cluster of one node that ends with this process. */
export function upOneNode(name: string, other: Partial<UpOptions> = {}): Promise<Cluster> {
  return upOwned(name, 1, other);
}

/** Brings up a cluster that ends with this process. */
export function upOwned(name: string, nodes: number, other: Partial<UpOptions> = {}): Promise<Cluster> {
  return upCluster({
    name,
    nodes,
    ranges: "private",
    proxyMode: "nftables",
    kubernetes: "newest",
    lifetime: "owner",
    images: imageTarballs,
    renderer: "silent",
    ...other,
  });
}
