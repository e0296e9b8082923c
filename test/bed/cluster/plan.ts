import { homedir } from "node:os";
import { join } from "node:path";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { z } from "zod";
import { netnsPath } from "../system/network-namespace.ts";
import type { ControlPlanePlan } from "./control-plane-commands.ts";
import { KubernetesVersion } from "./kubernetes-binary.ts";

export const MAX_NODES = 3;

export const RangesName = z.enum(["private", "mixed"]);
export type RangesName = z.infer<typeof RangesName>;

export const ProxyMode = z.enum(["nftables", "iptables"]);
export type ProxyMode = z.infer<typeof ProxyMode>;

/** What a caller chooses. */
export const ClusterOptions = z.object({
  /** Also part of the names of its network namespaces and of its state folder. */
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,19}$/, "a cluster's name is at most 20 of a-z, 0-9 and -, and starts with a-z"),
  nodes: z.int().min(1).max(MAX_NODES),
  ranges: RangesName,
  proxyMode: ProxyMode,
  kubernetes: KubernetesVersion.default("newest"),
  lifetime: z.enum(["owner", "detached"]),
});
export type ClusterOptions = z.infer<typeof ClusterOptions>;

interface BothFamilies {
  readonly ipv4: string;
  readonly ipv6: string;
}

export interface NodePlan extends BothFamilies {
  readonly name: string;
  readonly tap: string;
  readonly mac: string;
  /** On the loopback of the cluster's namespace. */
  readonly execPort: number;
}

/** One way to the internet: a veth pair between the two namespaces. */
export interface Leg {
  /** Of the interface on the cluster's side; the other side's is the same with "-out". */
  readonly name: string;
  readonly near: BothFamilies;
  readonly far: BothFamilies;
  readonly mtuBytes: number;
  /** Addresses that are reached over this leg. */
  readonly addresses: readonly string[];
}

interface InternetPlan {
  readonly netns: string;
  /** Outside every private range. */
  readonly wide: BothFamilies;
  /** Inside the private ranges, as an office's servers are. */
  readonly narrow: BothFamilies;
  /** As `narrow`, but in a range that a cluster may well lie in. */
  readonly narrowTen: string;
  /** Behind a link that carries packets of at most 1400 bytes. */
  readonly lowMtu: BothFamilies;
  /** Where clouds serve a node's secrets. */
  readonly metadata: string;
  readonly legs: readonly Leg[];
}

/** Everything about a cluster that follows from its options. */
export interface ClusterPlan {
  readonly options: ClusterOptions;
  readonly folder: string;
  /** Name of the network namespace with the control plane, the bridge of the nodes and the way to the internet. */
  readonly netns: string;
  readonly bridge: string;
  /** IPv4 first, the primary family. */
  readonly podCidrs: readonly [string, string];
  readonly serviceCidrs: readonly [string, string];
  /** The apiserver's address, and the nodes' default gateway. */
  readonly gateway: BothFamilies;
  readonly dnsServiceIPs: readonly [string, string];
  readonly nodes: readonly NodePlan[];
  readonly internet: InternetPlan;
}

interface Ranges {
  readonly podCidrs: readonly [string, string];
  readonly serviceCidrs: readonly [string, string];
  readonly dnsServiceIPs: readonly [string, string];
}

const RANGES: Readonly<Record<RangesName, Ranges>> = {
  private: {
    podCidrs: ["10.244.0.0/16", "fd00:10:244::/56"],
    serviceCidrs: ["10.96.0.0/16", "fd00:10:96::/112"],
    dnsServiceIPs: ["10.96.0.10", "fd00:10:96::a"],
  },
  // Pods in shared address space (RFC 6598) and Services in benchmarking space, as clusters that ran out of private
  // addresses have them; IPv6 is global.
  mixed: {
    podCidrs: ["100.64.0.0/16", "2001:db8:64::/56"],
    serviceCidrs: ["198.18.0.0/16", "2001:db8:96::/112"],
    dnsServiceIPs: ["198.18.0.10", "2001:db8:96::a"],
  },
};

const FIRST_EXEC_PORT = 7001;

/** The state folder of a cluster: `${XDG_STATE_HOME:-~/.local/state}/egress-nat/clusters/NAME`. */
export function clusterFolder(name: string): string {
  const home = process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state");
  return join(home, "egress-nat", "clusters", name);
}

/** @throws ToolError `bad-options` with a sentence for each option that does not hold */
export function planCluster(wanted: ClusterOptions): ClusterPlan {
  const parsed = ClusterOptions.safeParse(wanted);
  if (!parsed.success) throw new ToolError("bad-options", z.prettifyError(parsed.error));
  const options = parsed.data;
  const netns = `egress-nat-${options.name}`;
  return {
    options,
    folder: clusterFolder(options.name),
    netns,
    bridge: "nodes",
    ...RANGES[options.ranges],
    gateway: { ipv4: "172.30.0.1", ipv6: "fd00:30::1" },
    nodes: Array.from({ length: options.nodes }, (_, index) => planNode(index + 1)),
    internet: planInternet(`${netns}-internet`),
  };
}

function planNode(number: number): NodePlan {
  return {
    name: `node${number}`,
    ipv4: `172.30.0.${10 + number}`,
    ipv6: `fd00:30::${10 + number}`,
    tap: `node${number}`,
    mac: `52:54:00:00:00:0${number}`,
    execPort: FIRST_EXEC_PORT + number - 1,
  };
}

function planInternet(netns: string): InternetPlan {
  const wide = { ipv4: "203.0.113.10", ipv6: "2001:db8:1::10" };
  const narrow = { ipv4: "192.168.77.10", ipv6: "fd00:192:168:77::10" };
  const narrowTen = "10.77.0.10";
  const lowMtu = { ipv4: "198.51.100.10", ipv6: "2001:db8:2::10" };
  const metadata = "169.254.169.254";
  return {
    netns,
    wide,
    narrow,
    narrowTen,
    lowMtu,
    metadata,
    legs: [
      {
        name: "wan",
        near: { ipv4: "172.31.0.1", ipv6: "fd00:31::1" },
        far: { ipv4: "172.31.0.2", ipv6: "fd00:31::2" },
        mtuBytes: 1500,
        addresses: [wide.ipv4, wide.ipv6, narrow.ipv4, narrow.ipv6, narrowTen, metadata],
      },
      {
        name: "wan1400",
        near: { ipv4: "172.31.1.1", ipv6: "fd00:31:1::1" },
        far: { ipv4: "172.31.1.2", ipv6: "fd00:31:1::2" },
        mtuBytes: 1400,
        addresses: [lowMtu.ipv4, lowMtu.ipv6],
      },
    ],
  };
}

/** The control plane of a cluster. Ports are fixed: the cluster's namespace holds nothing else. */
export function planControlPlane(plan: ClusterPlan): ControlPlanePlan {
  return {
    folder: plan.folder,
    address: plan.gateway.ipv4,
    ports: { etcd: 2379, etcdPeer: 2380, apiserver: 6443, controllerManager: 10257, scheduler: 10259 },
    serviceCidrs: [...plan.serviceCidrs],
    podCidrs: [...plan.podCidrs],
    controllers: true,
    kubernetes: plan.options.kubernetes,
    netns: netnsPath(plan.netns),
    lifetime: plan.options.lifetime,
  };
}
