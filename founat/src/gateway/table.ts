import { IP, perFamily, VERSION } from "../backends/nft/per-family.ts";
import type { NftChain, NftRule, NftSet, NftTable } from "../backends/nft/table.ts";
import { type Addresses, FAMILIES, type Family } from "../family.ts";
import { LINK_GROUP } from "../iproute/links.ts";
import type { Range } from "../routing/cidr.ts";
import { PROBE_PREFIXES } from "../routing/probe-addresses.ts";
import { formatRange } from "../routing/ranges.ts";
import { OUTER_MARK, PASSED_MARK } from "./marks.ts";

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
  /** The gateway's own, with which clients leave. */
  readonly addresses: Addresses;
  readonly port: number;
  /** The addresses that clients may reach. */
  readonly destinations: Readonly<Record<Family, readonly Range[]>>;
  /** The tunnel links. */
  readonly links: readonly { readonly family: Family; readonly name: string }[];
  /** Whether the kernel has flowtables. */
  readonly fastPath: boolean;
}

/** Why a gateway drops packets. */
export const DROP_REASONS = [
  /** From the network, to the tunnel, of somebody who is no client. */
  "no_client",
  /** Through the tunnel, with a source that is not its client's. */
  "foreign_source",
  /** Through the tunnel, to the gateway itself. */
  "to_gateway",
  /** Of no flow that conntrack could know. */
  "invalid",
  "routing_header",
  /** To a place that the Egress does not name; from anywhere to a client that has not asked. */
  "not_allowed",
  /** Would have left as it came, with a client's address. */
  "untranslated",
] as const;
type DropReason = (typeof DROP_REASONS)[number];

function drop(reason: DropReason): string {
  return `counter name ${reason} drop`;
}

// A gateway's links have no remote.
const TUNNEL = LINK_GROUP.open;

const PASSED = hex(PASSED_MARK);
const OUTER = hex(OUTER_MARK);

function hex(mark: number): string {
  return `0x${mark.toString(16)}`;
}

/** The gateway's packet filter: opt-in is enforced here, whatever a client's network namespace says. */
export function gatewayTable(input: GatewayTableInput): NftTable {
  const { uplink, port, destinations, links, fastPath } = input;
  return {
    name: GATEWAY_TABLE,
    comment: "egress NAT gateway: clients only, as themselves only, to the Egress's destinations only",
    sets: FAMILIES.flatMap((family) => sets(family, destinations[family])),
    counters: DROP_REASONS,
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
          { text: drop("to_gateway"), comment: "no client reaches the gateway itself" },
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
              "of anybody else: ends after conntrack, unless it is the answer to a flow that NAT gave this port",
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
          {
            text: `iifgroup != ${TUNNEL} meta l4proto { 4, 41 } fib daddr type != unicast ${drop("no_client")}`,
            comment: "a tunnel without UDP would carry no mark",
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
        rules: [
          {
            text: `udp dport ${port} meta mark set ${OUTER} notrack`,
            comment: "nobody asks for their flow; the mark lets them leave",
          },
        ],
      },
      ...links.map(ingress),
      {
        name: "tracked",
        hook: "type filter hook prerouting priority mangle; policy accept;",
        comment:
          "After conntrack, before routing. Outer packets of clients, most of what comes, leave each rule at once.",
        rules: [
          {
            text: `ct direction reply ct status snat iif "${uplink}" meta mark set ${PASSED} accept`,
            comment: "answers to flows that were translated get the mark that leads into a tunnel",
          },
          {
            text: `iifgroup ${TUNNEL} fib daddr type != unicast goto from_tunnel`,
            comment: "through the tunnel, to this host",
          },
          {
            text: `meta mark 0 udp dport ${port} ${drop("no_client")}`,
            comment: "outer packets of anybody else",
          },
        ],
      },
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
          { text: `ct state invalid,untracked ${drop("invalid")}`, comment: "would leave without NAT" },
          {
            text: `exthdr rt exists ${drop("routing_header")}`,
            comment: "a routing header names places that no rule has seen",
          },
          ...perFamily(
            (ip, v) =>
              `iifgroup ${TUNNEL} oifname "${uplink}" ${ip} daddr @destinations${v} goto to_destination`,
            "clients to destinations",
          ),
          ...perFamily(
            (ip, v) =>
              `iifname "${uplink}" oifgroup ${TUNNEL} ct original ${ip} daddr @destinations${v} ct state established,related accept`,
            "answers of destinations, and of routers on the way there",
          ),
          { text: drop("not_allowed"), comment: "whatever else" },
        ],
      },
      {
        name: "source_nat",
        hook: "type nat hook postrouting priority srcnat; policy accept;",
        comment: "Random ports: two clients that use one port do not wait for each other.",
        rules: perOwnAddress(
          input,
          (ip, _, address) => `iifgroup ${TUNNEL} oifname "${uplink}" snat ${ip} to ${address} fully-random`,
          "clients leave with the gateway's address",
        ),
      },
      {
        name: "from_client",
        comment: "What no other chain has stopped or translated ends here.",
        rules: [
          ...perOwnAddress(
            input,
            (ip, v, address) =>
              `oifname "${uplink}" ${ip} saddr ${address} ${ip} daddr @destinations${v} accept`,
            "to destinations, with the gateway's address",
          ),
          { text: drop("untranslated"), comment: "would leave with a client's address, or to another place" },
        ],
      },
      {
        name: "departures",
        hook: "type filter hook postrouting priority srcnat + 1; policy accept;",
        comment: "Fail closed, whatever became of the chains before.",
        // To the kernel an outer packet, too, has come from the tunnel's link. That it is not tracked does not tell it:
        // nor is neighbour discovery (nf_conntrack_proto_icmpv6.c), which a client may send anywhere.
        rules: [{ text: `meta mark != ${OUTER} iifgroup ${TUNNEL} goto from_client`, comment: "of clients" }],
      },
    ],
  };
}

/** Rules for the families in which the gateway has an address. */
function perOwnAddress(
  { addresses }: GatewayTableInput,
  text: (ip: string, version: string, address: string) => string,
  comment: string,
): NftRule[] {
  return perFamily((ip, v, family) => {
    const address = addresses[family];
    return address === undefined ? "" : text(ip, v, address);
  }, comment).filter((rule) => rule.text !== "");
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
        text: `${IP[family]} saddr . meta mark @inner${VERSION[family]} meta mark set ${PASSED} accept`,
        comment: "inner source belongs to the outer one",
      },
      { text: drop("foreign_source"), comment: "a client speaks for another" },
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
