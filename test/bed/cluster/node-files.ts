import type { ClusterPlan, NodePlan } from "./plan.ts";

/** Where the node's disk is mounted: programs, images and containers. */
export const NODE_DISK = "/node";

/** Identity of a node, PEM and kubeconfig texts. */
export interface NodeCredentials {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  readonly kubeletKubeconfig: string;
  readonly proxyKubeconfig: string;
}

/** The configuration files of a node by their paths on it, all but the CNI's, which waits for the node's podCIDRs. */
export function nodeFiles(
  plan: ClusterPlan,
  node: NodePlan,
  credentials: NodeCredentials,
): Readonly<Record<string, string>> {
  return {
    "/etc/kubernetes/ca.crt": credentials.ca,
    "/etc/kubernetes/node.crt": credentials.certificate,
    "/etc/kubernetes/node.key": credentials.key,
    "/etc/kubernetes/kubelet.kubeconfig": credentials.kubeletKubeconfig,
    "/etc/kubernetes/kube-proxy.kubeconfig": credentials.proxyKubeconfig,
    "/etc/kubernetes/kubelet.json": json(kubeletConfig(plan)),
    "/etc/kubernetes/kube-proxy.json": json(proxyConfig(plan, node)),
    // There is no DNS outside the cluster.
    "/etc/kubernetes/resolv.conf": "",
    "/etc/containerd/config.toml": CONTAINERD_CONFIG,
    "/etc/hosts": hosts(plan),
  };
}

/** The CNI configuration of a node, as simple CNI-less clusters have it: bridge, host-local and portmap, no masquerading. */
export function cniConflist(podCidrs: readonly string[]): string {
  return json({
    cniVersion: "1.0.0",
    name: "pods",
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        isGateway: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          ranges: podCidrs.map((subnet) => [{ subnet }]),
          routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });
}

export const CNI_CONFLIST = "/etc/cni/net.d/10-pods.conflist";

const CONTAINERD_CONFIG = `version = 2
root = "${NODE_DISK}/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`;

function kubeletConfig(plan: ClusterPlan): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: {
      x509: { clientCAFile: "/etc/kubernetes/ca.crt" },
      webhook: { enabled: true },
      anonymous: { enabled: false },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: "/etc/kubernetes/node.crt",
    tlsPrivateKeyFile: "/etc/kubernetes/node.key",
    cgroupDriver: "cgroupfs",
    containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
    clusterDomain: "cluster.local",
    clusterDNS: [plan.dnsServiceIPs[0]],
    resolvConf: "/etc/kubernetes/resolv.conf",
    podLogsDir: "/var/log/pods",
    volumePluginDir: "/var/lib/kubelet/volumeplugins",
    failSwapOn: false,
    // The disk is thrown away, and it and the memory are large enough: nothing is measured in order to evict pods.
    evictionHard: {},
    localStorageCapacityIsolation: false,
    volumeStatsAggPeriod: "-1s",
    imageGCHighThresholdPercent: 100,
    enforceNodeAllocatable: [],
    // Image tarballs are the only source of images, and events are what the tests look at.
    registryPullQPS: 0,
    eventRecordQPS: 0,
  };
}

function proxyConfig(plan: ClusterPlan, node: NodePlan): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: "/etc/kubernetes/kube-proxy.kubeconfig" },
    hostnameOverride: node.name,
    mode: plan.options.proxyMode,
    clusterCIDR: plan.podCidrs.join(","),
    // The machine's own limits hold: they are not this cluster's to change.
    conntrack: { maxPerCore: 0 },
  };
}

function hosts(plan: ClusterPlan): string {
  const nodes = plan.nodes.flatMap(({ name, ipv4, ipv6 }) => [`${ipv4} ${name}`, `${ipv6} ${name}`]);
  return `${["127.0.0.1 localhost", "::1 localhost", ...nodes].join("\n")}\n`;
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
