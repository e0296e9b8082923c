import { imageTarballs } from "@egress-nat/tools/images";
import type { Cluster } from "./cluster.ts";
import { type UpOptions, upCluster } from "./up.ts";

/** Brings up a cluster of one node that ends with this process. */
export function upOneNode(name: string, other: Partial<UpOptions> = {}): Promise<Cluster> {
  return upCluster({
    name,
    nodes: 1,
    ranges: "private",
    proxyMode: "nftables",
    kubernetes: "newest",
    lifetime: "owner",
    images: imageTarballs,
    renderer: "silent",
    ...other,
  });
}
