/** Chains of upstream's plugins, which chains.datapath.test.ts runs with egress-nat in them and without. */

/** Where a pod with a server is found: on its own address, or on a port of the node. */
export const NODE_PORT = 8080;

export interface Chain {
  readonly name: string;
  readonly plugins: readonly Readonly<Record<string, unknown>>[];
  /** Whether the node's port is forwarded to the pod. */
  readonly forwards: boolean;
}

const BRIDGE = { type: "bridge", bridge: "cni0", isGateway: true, ipam: ipam("10.88.0.0/24") };

export const CHAINS: readonly Chain[] = [
  {
    name: "bridge, portmap (iptables)",
    plugins: [BRIDGE, { type: "portmap", backend: "iptables", capabilities: { portMappings: true } }],
    forwards: true,
  },
  {
    name: "bridge, portmap (nftables)",
    plugins: [BRIDGE, { type: "portmap", backend: "nftables", capabilities: { portMappings: true } }],
    forwards: true,
  },
  {
    name: "bridge, bandwidth",
    plugins: [BRIDGE, { type: "bandwidth", capabilities: { bandwidth: true } }],
    forwards: false,
  },
  {
    name: "ptp, tuning",
    plugins: [
      { type: "ptp", ipam: ipam("10.88.0.0/24") },
      { type: "tuning", mtu: 1400, sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1" } },
    ],
    forwards: false,
  },
  {
    name: "bridge, firewall",
    plugins: [BRIDGE, { type: "firewall", backend: "iptables" }],
    forwards: false,
  },
  {
    name: "macvlan",
    plugins: [{ type: "macvlan", master: "uplink", ipam: ipam("10.99.0.0/24", "10.99.0.10") }],
    forwards: false,
  },
];

/** The annotations of a pod that is no client reach the plugin, as containerd and CRI-O have it. */
const EGRESS_NAT = { type: "egress-nat", capabilities: { "io.kubernetes.cri.pod-annotations": true } };

/** The places of egress-nat in a chain: how many plugins come before it. */
export function positions({ plugins }: Chain): readonly number[] {
  return plugins.map((_, index) => index + 1).toReversed();
}

export function withEgressNat(chain: Chain, position: number): Chain {
  return { ...chain, plugins: chain.plugins.toSpliced(position, 0, EGRESS_NAT) };
}

function ipam(subnet: string, rangeStart?: string) {
  const range = rangeStart === undefined ? { subnet } : { subnet, rangeStart };
  return {
    type: "host-local",
    dataDir: "/run/host-local",
    ranges: [[range]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
}
