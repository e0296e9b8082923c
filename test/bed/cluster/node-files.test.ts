import { expect, test } from "vitest";
import { cniConflist, nodeFiles } from "./node-files.ts";
import { type NodePlan, planCluster } from "./plan.ts";

const plan = planCluster({
  name: "demo",
  nodes: 1,
  ranges: "mixed",
  proxyMode: "iptables",
  kubernetes: "newest",
  lifetime: "detached",
});
const credentials = { ca: "", certificate: "", key: "", kubeletKubeconfig: "", proxyKubeconfig: "" };
const files = nodeFiles(plan, plan.nodes[0] as NodePlan, credentials);

test("pods ask the cluster's DNS", () => {
  expect(JSON.parse(files["/etc/kubernetes/kubelet.json"] ?? "")).toMatchObject({
    clusterDNS: ["198.18.0.10"],
    clusterDomain: "cluster.local",
  });
});

test("kube-proxy runs in the mode that was asked for, and knows the pods of both families", () => {
  expect(JSON.parse(files["/etc/kubernetes/kube-proxy.json"] ?? "")).toMatchObject({
    mode: "iptables",
    clusterCIDR: "100.64.0.0/16,2001:db8:64::/56",
  });
});

test("pods get an address of each of the node's ranges, and keep it on their way out", () => {
  const { plugins } = JSON.parse(cniConflist(["100.64.0.0/24", "2001:db8:64::/64"]));
  expect(plugins[0].ipam.ranges).toEqual([[{ subnet: "100.64.0.0/24" }], [{ subnet: "2001:db8:64::/64" }]]);
  expect(plugins[0].ipMasq).toBeUndefined();
});
