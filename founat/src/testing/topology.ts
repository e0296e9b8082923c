import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Family } from "@egress-nat/addresses";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import { CLIENT_TABLE } from "../backends/nft/guard-table.ts";
import type { RefusalReason } from "../client/policy.ts";
import { type Kernel, kernelThrough } from "../kernel/kernel.ts";

/** The network namespaces: pods on a node's bridge, the node itself, and what is outside. */
const NAMESPACES = ["client", "neighbour", "gateway", "stranger", "router", "internet"] as const;
export type Namespace = (typeof NAMESPACES)[number];

export const ADDRESSES: Readonly<Record<string, Readonly<Record<Family, string>>>> = {
  client: { ipv4: "10.1.0.2", ipv6: "fd00:1::2" },
  neighbour: { ipv4: "10.1.0.3", ipv6: "fd00:1::3" },
  gateway: { ipv4: "10.1.0.4", ipv6: "fd00:1::4" },
  stranger: { ipv4: "10.1.0.5", ipv6: "fd00:1::5" },
  internet: { ipv4: "192.0.2.2", ipv6: "2001:db8::2" },
  /** Also in the internet namespace: a private network outside of the cluster. */
  narrow: { ipv4: "192.168.10.1", ipv6: "fd99::1" },
  /** The router sends what comes here on UDP port 5555 to the gateway, as kube-proxy does for a ClusterIP. */
  service: { ipv4: "100.96.0.10", ipv6: "fd00:96::10" },
};

/** Not all of them private: 100.96.0.0/16 holds the Service. */
export const CLUSTER_RANGES = ["10.1.0.0/24", "100.96.0.0/16", "fd00:1::/64", "fd00:96::/112"];

const PODS = ["client", "neighbour", "gateway", "stranger"] as const;

/** The address of a namespace or role. */
export function addressOf(role: string, family: Family): string {
  const address = ADDRESSES[role]?.[family];
  if (address === undefined) throw new Error(`no address for ${role}`);
  return address;
}

/** Makes the namespaces; a server in `internet` answers with the source address that it saw. */
export async function buildTopology(): Promise<void> {
  await destroyTopology();
  await ipBatch(
    [],
    [
      ...NAMESPACES.map((name) => `netns add ${name}`),
      ...PODS.map((pod) => `link add eth0 netns ${pod} type veth peer name ${pod} netns router`),
      "link add eth0 netns internet type veth peer name ext netns router",
    ],
  );
  await ipBatch(
    ["-n", "router"],
    [
      "link set lo up",
      // With an address of its own: that of its ports changes with them, and neighbours do not hear of it.
      "link add br0 address 02:00:00:00:00:01 type bridge",
      "link set br0 up",
      "address add 10.1.0.1/24 dev br0",
      "address add fd00:1::1/64 dev br0 nodad",
      ...PODS.map((pod) => `link set ${pod} master br0 up`),
      "link set ext up",
      "address add 192.0.2.1/24 dev ext",
      "address add 2001:db8::1/64 dev ext nodad",
      "route add 192.168.10.0/24 via 192.0.2.2",
      "route add fd99::/64 via 2001:db8::2",
    ],
  );
  await ipBatch(
    ["-n", "internet"],
    [
      "link set lo up",
      "link set eth0 up",
      "address add 192.0.2.2/24 dev eth0",
      "address add 2001:db8::2/64 dev eth0 nodad",
      "address add 192.168.10.1/32 dev lo",
      "address add fd99::1/128 dev lo nodad",
      "route add default via 192.0.2.1",
      "route add default via 2001:db8::1",
    ],
  );
  for (const pod of PODS) {
    await ipBatch(
      ["-n", pod],
      [
        "link set lo up",
        "link set eth0 up",
        `address add ${addressOf(pod, "ipv4")}/24 dev eth0`,
        `address add ${addressOf(pod, "ipv6")}/64 dev eth0 nodad`,
        "route add default via 10.1.0.1",
        "route add default via fd00:1::1",
      ],
    );
  }
  await kernelOf("router").run([
    {
      sysctls: {
        "net/ipv4/ip_forward": "1",
        "net/ipv6/conf/all/forwarding": "1",
        "net/bridge/bridge-nf-call-iptables": "1",
        "net/bridge/bridge-nf-call-ip6tables": "1",
      },
    },
    { file: "nft", args: ["-f", "-"], input: ROUTER_TABLES },
  ]);
  await startProbe();
  await serve("internet", 9000);
}

export async function destroyTopology(): Promise<void> {
  await machine.run(`
    [ ! -e ${PROBE_FOLDER}/pid ] || kill -9 $(cat ${PROBE_FOLDER}/pid)
    rm -rf ${PROBE_FOLDER}
    for n in ${NAMESPACES.join(" ")}; do
      [ ! -e /run/netns/$n ] || ip netns del $n
    done`);
}

const PROBE_FOLDER = "/run/founat";

/** One program plays a part in every namespace: see probe.py. */
async function startProbe(): Promise<void> {
  const program = await readFile(join(import.meta.dirname, "probe.py"), "utf8");
  const start = `
    mkdir ${PROBE_FOLDER} && cd ${PROBE_FOLDER} && cat > probe.py
    python3 probe.py socket >log 2>&1 </dev/null & echo $! >pid
    until [ -S socket ]; do kill -0 $(cat pid) && sleep 0.05 || { cat log >&2; exit 1; }; done`;
  await machine.run(["sh", "-c", start], { input: program });
}

/** Has probe.py do something in a namespace. */
async function probe(namespace: Namespace, command: string, parameters: object = {}): Promise<string> {
  const socat = ["socat", "-t", "100", "-", `UNIX-CONNECT:${PROBE_FOLDER}/socket`];
  const answer = await machine.run(socat, {
    input: JSON.stringify({ netns: namespace, command, ...parameters }),
  });
  if (answer.startsWith("probe.py failed")) throw new Error(`${command} in ${namespace}: ${answer}`);
  return answer;
}

/** Starts a server that answers with the source that it sees, TCP and UDP; port + 1 takes bulk. It stays. */
export async function serve(namespace: Namespace, port: number): Promise<void> {
  await probe(namespace, "serve", { port });
}

export interface ListenOptions {
  readonly address: string;
  /** Address and port. */
  readonly peer?: readonly [string, number];
  /** Of multicast. */
  readonly group?: string;
}

/** Starts a UDP server on one socket; it answers with what it got. It stays. */
export async function listen(namespace: Namespace, port: number, options: ListenOptions): Promise<void> {
  await probe(namespace, "listen", { port, ...options });
}

async function ipBatch(options: readonly string[], lines: readonly string[]): Promise<void> {
  await machine.run(["ip", ...options, "-batch", "-"], { input: `${lines.join("\n")}\n` });
}

// The Service, and what leaves from the client's own address towards the outside.
const ROUTER_TABLES = `
  table inet service {
    chain prerouting {
      type nat hook prerouting priority dstnat; policy accept;
      ip daddr ${addressOf("service", "ipv4")} udp dport 5555 dnat ip to ${addressOf("gateway", "ipv4")}
      ip6 daddr ${addressOf("service", "ipv6")} udp dport 5555 dnat ip6 to ${addressOf("gateway", "ipv6")}
    }
  }
  table inet watch {
    counter leaks { }
    counter bare_answers { }
    chain prerouting {
      type filter hook prerouting priority raw; policy accept;
      iifname br0 ip saddr ${addressOf("client", "ipv4")} ip daddr != { 10.0.0.0/8, 100.96.0.0/16, 224.0.0.0/4 } counter name leaks
      iifname br0 ip saddr ${addressOf("internet", "ipv4")} counter name bare_answers
      iifname br0 ip6 saddr ${addressOf("internet", "ipv6")} counter name bare_answers
      iifname br0 ip6 saddr ${addressOf("client", "ipv6")} ip6 daddr != { fd00::/16, fe80::/10, ff00::/8 } counter name leaks
    }
  }
`;

/** The founat view of a namespace. */
export function kernelOf(namespace: Namespace): Kernel {
  return kernelIn(namespace);
}

/** The kernel of a namespace that a test has made, by its name. */
export function kernelIn(netns: string): Kernel {
  return kernelThrough((file, args, input) =>
    machine.exec(["nsenter", `--net=/run/netns/${netns}`, "--", file, ...args], { input }),
  );
}

/** Runs a shell command in a namespace. */
export function inside(namespace: Namespace, command: string): Promise<string> {
  return machine.run(["nsenter", `--net=/run/netns/${namespace}`, "sh", "-c", command]);
}

export interface AskOptions {
  readonly port?: number;
  /** To bind to. */
  readonly device?: string;
  /** A device that the first route leads to, and a second one need not (IP_UNICAST_IF, which takes no privilege). */
  readonly towards?: string;
  readonly tos?: number;
  /** Of its packets (SO_MARK, which takes a privilege). */
  readonly mark?: number;
  /** Bytes of payload. */
  readonly size?: number;
  /** Seconds. */
  readonly timeout?: number;
  readonly times?: number;
  /** A file: so many times more once that is gone. */
  readonly lasts?: string;
  /** Seconds between two questions. */
  readonly pause?: number;
  /** To bind to, another host's too: IPv6 needs no privilege for that. */
  readonly source?: string;
  readonly source_port?: number;
  /** Whether the socket has IP_TRANSPARENT, which takes a privilege. */
  readonly transparent?: boolean;
  /** Where a routing header (RFC 8754), or a source route (RFC 791), sends the packet first. */
  readonly route?: string;
}

/** Sends something to the server and returns its answer: the source it saw, or the error's name. */
export function ask(
  namespace: Namespace,
  protocol: "tcp" | "udp" | "bulk",
  address: string,
  options: AskOptions = {},
): Promise<string> {
  return probe(namespace, "ask", { protocol, address, ...options });
}

/** A packet of the sender's own making: UDP in FoU, in a tunnel without UDP, or bare. */
export interface ForgedPacket {
  readonly how: "fou" | "plain" | "bare";
  /** Where it is sent; the other addresses are the inner packet's. */
  readonly to: string;
  readonly source: string;
  readonly destination: string;
  readonly payload: string;
  readonly size?: number;
  /** Default: 9000. */
  readonly port?: number;
  readonly source_port?: number;
  /** Makes it a TCP segment; RFC 9293, section 3.1. */
  readonly tcp_flags?: number;
  /** In hexadecimal, whole words. */
  readonly tcp_options?: string;
  /** Makes it one of ICMP, by its bytes in hexadecimal; the checksum is filled in. */
  readonly icmp?: string;
  /** Where a routing header (RFC 8754) sends an IPv6 packet first. */
  readonly route?: string;
  /** Sends only these bytes of its content, as a fragment: the first, a multiple of eight, and the one after the last. */
  readonly fragment?: readonly [first: number, end: number];
}

export async function forge(namespace: Namespace, packets: readonly ForgedPacket[]): Promise<void> {
  await probe(namespace, "forge", { packets });
}

/** The router says that it is one, and of what network; a client of RA gets an address and a default route from it. */
export async function advertise(prefix: string): Promise<void> {
  await probe("router", "advertise", { device: "br0", prefix });
}

/**
 * A namespace says what only routers may say, as the router and as another one: RA with a prefix, a route and high
 * preference, an IPv4 redirect, ARP and NA that nobody asked for.
 */
export async function lie(namespace: Namespace, victim: Namespace): Promise<void> {
  const router = { ipv4: "10.1.0.1", ipv6: "fd00:1::1" };
  await probe(namespace, "lie", { device: "eth0", router, victim: ADDRESSES[victim] });
}

/** The datagrams that a namespace's server got: source, size and payload. */
export async function seenBy(namespace: Namespace, port = 9000): Promise<string[]> {
  return (await probe(namespace, "seen", { port })).split("\n").filter(Boolean);
}

/**
 * Sends datagrams to addresses from the client all the time, by the routes and from sockets that are bound to the
 * uplink.
 *
 * @param devices to which sockets are bound; an empty one: to none
 * @returns what ends it
 */
export async function chatter(
  addresses: readonly string[],
  devices: readonly string[] = ["", "eth0"],
): Promise<() => Promise<void>> {
  await probe("client", "chatter", { addresses, devices });
  return silence;
}

/**
 * Has a server stream datagrams to the client, which now and then sends `more` itself, until {@link silence}.
 *
 * @returns the client's port
 */
export function subscribe(address: string): Promise<string> {
  return probe("client", "subscribe", { address });
}

/** How many datagrams of the stream from a server the client has got. */
export async function heard(address: string): Promise<number> {
  return Number(await probe("client", "heard", { address }));
}

/** Keeps conversations over TCP and UDP between the client and servers going, until {@link silence}. */
export async function talk(addresses: readonly string[]): Promise<void> {
  await probe("client", "talk", { addresses });
}

/** Has a namespace forge packets all the time, until {@link silence}. */
export async function besiege(namespace: Namespace, packets: readonly ForgedPacket[]): Promise<void> {
  await probe(namespace, "besiege", { packets });
}

/** Ends what {@link chatter}, {@link talk} and {@link besiege} began, and what the client sends into a stream. */
export async function silence(): Promise<void> {
  await probe("client", "silence");
}

/** Has the router fill in checksums before it sends packets to a pod, as a card does. */
export async function fillChecksumsTowards(pod: (typeof PODS)[number]): Promise<void> {
  await probe("router", "software_checksums", { device: pod });
}

/** Packets with the client's own address on their way to the outside. */
export function leaks(): Promise<number> {
  return packetsOf("router", "watch leaks");
}

/** Packets of the internet that a pod sent on without a tunnel around them. */
export function bareAnswers(): Promise<number> {
  return packetsOf("router", "watch bare_answers");
}

/** Packets that the client's guard has refused. */
export function refused(reason: RefusalReason): Promise<number> {
  return packetsOf("client", `${CLIENT_TABLE} ${reason}`);
}

async function packetsOf(namespace: Namespace, counter: string): Promise<number> {
  const output = await inside(namespace, `nft list counter inet ${counter}`);
  return Number(/packets (\d+)/.exec(output)?.[1]);
}

export async function forgetLeaks(): Promise<void> {
  await inside("router", "nft reset counter inet watch leaks");
}

/** Lines of conntrack's list that hold `text`. */
export async function flows(namespace: Namespace, text: string): Promise<string[]> {
  const list = await inside(namespace, "conntrack -L 2>/dev/null");
  return list.split("\n").filter((line) => line.includes(text));
}
