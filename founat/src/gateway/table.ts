import type { Range } from "../cidr.ts";
import { FAMILIES, type Family } from "../family.ts";
import { LINK_GROUP } from "../iproute/links.ts";
import { IP, perFamily, VERSION } from "../nft/per-family.ts";
import type { NftChain, NftSet, NftTable } from "../nft/table.ts";
import { PROBE_PREFIXES } from "../probe-addresses.ts";
import { formatRange } from "../ranges.ts";

const ICMP: Readonly<Record<Family, string>> = { ipv4: "icmp", ipv6: "icmpv6" };

export const GATEWAY_TABLE = "egress_nat_gateway";

const FAST_PATH = "fast_path";

/** The chain that sees first what comes through a tunnel link. */
export function ingressChain(link: string): string {
  return `${link}_ingress`;
}

/** The sets that hold clients: they outlive every other change of the table. */
export const CLIENT_SETS: ReadonlySet<string> = new Set(["clients4", "clients6", "inner4", "inner6"]);

export interface GatewayTableInput {
  readonly uplink: string;
  readonly port: number;
  /** The addresses that clients may reach. */
  readonly destinations: Readonly<Record<Family, readonly Range[]>>;
  /** The tunnel links. */
  readonly links: readonly { readonly family: Family; readonly name: string }[];
  /** Whether the kernel has flowtables. */
  readonly fastPath: boolean;
}

// A gateway's links have no remote.
const TUNNEL = LINK_GROUP.open;

/** The gateway's packet filter: opt-in is enforced here, whatever a client's network namespace says. */
export function gatewayTable({ uplink, port, destinations, links, fastPath }: GatewayTableInput): NftTable {
  return {
    name: GATEWAY_TABLE,
    comment: "egress NAT gateway: clients only, as themselves only, to the Egress's destinations only",
    sets: FAMILIES.flatMap((family) => sets(family, destinations[family])),
    flowtables: fastPath
      ? [
          {
            name: FAST_PATH,
            comment:
              "Flows that were let through both ways. What comes from a tunnel has passed its ingress chain.",
            devices: [uplink, ...links.map(({ name }) => name)],
          },
        ]
      : [],
    chains: [
      {
        name: "from_tunnel",
        comment: "No client reaches the gateway itself.",
        rules: [
          ...perFamily(
            (ip, _, family) =>
              `${ip} daddr ${PROBE_PREFIXES[family]} ${ICMP[family]} type echo-request accept`,
            "probes of the tunnel: the kernel answers, no socket is reached",
          ),
          { text: "drop", comment: "no client reaches the gateway itself" },
        ],
      },
      {
        name: "outer",
        comment:
          "Outer packets of clients get their client's mark, which survives decapsulation. Nobody asks for their flow.",
        rules: [
          ...perFamily((ip, v) => `meta mark set ${ip} saddr map @clients${v} notrack accept`, "of clients"),
          {
            text: "meta mark set 0",
            comment:
              "of anybody else: ends at input, unless it is the answer to a flow that NAT gave this port",
          },
        ],
      },
      {
        name: "arrivals",
        hook: "type filter hook prerouting priority raw; policy accept;",
        comment:
          "What goes into a tunnel. The ct rules of this table make conntrack put fragments together before this chain, so " +
          "that none passes without its UDP header.",
        rules: [
          { text: `iif "${uplink}" udp dport ${port} goto outer`, comment: "outer packets" },
          {
            text: `udp dport ${port} fib daddr type != unicast goto outer`,
            comment: "outer packets from within",
          },
          ...perFamily(
            (ip, _, family) => `iifgroup != ${TUNNEL} ${ip} daddr ${PROBE_PREFIXES[family]} drop`,
            "probes come through the tunnel only",
          ),
        ],
      },
      {
        name: "outer_output",
        hook: "type filter hook output priority raw; policy accept;",
        comment: "Outer packets to clients.",
        rules: [{ text: `udp dport ${port} notrack`, comment: "nobody asks for their flow" }],
      },
      {
        name: "tunnel_input",
        hook: "type filter hook input priority filter; policy accept;",
        comment: "What comes out of a tunnel.",
        rules: [
          { text: `iifgroup ${TUNNEL} goto from_tunnel`, comment: "through the tunnel" },
          { text: "meta l4proto udp meta mark != 0 accept", comment: "outer packets of clients" },
          { text: `udp dport ${port} drop`, comment: "of anybody else" },
          { text: "meta l4proto { 4, 41 } drop", comment: "a tunnel without UDP would carry no mark" },
        ],
      },
      ...links.map(ingress),
      {
        name: "to_destination",
        comment:
          "Established: an answer has come. Not from the first packet on, whose segment size is to be clamped.",
        rules: [
          ...(fastPath
            ? [
                {
                  text: `meta l4proto { tcp, udp } ct state established flow add @${FAST_PATH}`,
                  comment: "further packets of the flow take the fast path, both ways",
                },
              ]
            : []),
          { text: "accept", comment: "clients to destinations" },
        ],
      },
      {
        name: "forward",
        hook: "type filter hook forward priority filter; policy drop;",
        comment:
          "Clients to destinations, answers back, nothing else: no neighbour routes packets to clients.",
        rules: [
          {
            text: "tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu",
            comment: "the tunnel's MTU is smaller than what both ends see: clamp the segment size",
          },
          { text: "ct state invalid,untracked drop", comment: "would leave without NAT" },
          ...perFamily(
            (ip, v) =>
              `iifgroup ${TUNNEL} oifname "${uplink}" ${ip} daddr @destinations${v} goto to_destination`,
            "clients to destinations",
          ),
          {
            text: `iifname "${uplink}" oifgroup ${TUNNEL} ct state established,related accept`,
            comment: "answers",
          },
        ],
      },
      {
        name: "source_nat",
        hook: "type nat hook postrouting priority srcnat; policy accept;",
        comment: "Random ports: two clients that use one port do not wait for each other.",
        rules: [
          {
            text: `iifgroup ${TUNNEL} oifname "${uplink}" masquerade fully-random`,
            comment: "clients leave with the gateway's address",
          },
        ],
      },
    ],
  };
}

/**
 * Before the fast path, which is at the same hook, and before conntrack puts fragments together. The kernel takes such
 * a chain away with its link.
 */
function ingress({ family, name }: { readonly family: Family; readonly name: string }): NftChain {
  return {
    name: ingressChain(name),
    hook: `type filter hook ingress device "${name}" priority filter - 1; policy accept;`,
    comment: "An inner packet has its client's own source.",
    rules: [
      {
        text: `${IP[family]} saddr . meta mark @inner${VERSION[family]} accept`,
        comment: "inner source belongs to the outer one",
      },
      { text: "drop", comment: "a client speaks for another" },
    ],
  };
}

function sets(family: Family, destinations: readonly Range[]): NftSet[] {
  const address = `${family}_addr`;
  const v = VERSION[family];
  return [
    {
      name: `clients${v}`,
      kind: "map",
      type: `${address} : mark`,
      comment: "outer source : mark of the client",
      elements: [],
    },
    {
      name: `inner${v}`,
      kind: "set",
      type: `${address} . mark`,
      comment: "inner source . mark of the client",
      elements: [],
    },
    {
      name: `destinations${v}`,
      kind: "set",
      type: address,
      interval: true,
      comment: "what clients may reach",
      elements: destinations.map((range) => formatRange(family, range)),
    },
  ];
}
