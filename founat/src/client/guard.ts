import { perFamily, VERSION } from "../backends/nft/per-family.ts";
import type { NftChain, NftSet, NftTable } from "../backends/nft/table.ts";
import { FAMILIES, type Family } from "../family.ts";
import { LINK_GROUP } from "../iproute/links.ts";
import { normalizeCidrs, parseCidr, prefixesOf, type Range, rangeOf } from "../routing/cidr.ts";
import { carriedRanges, type Decision, NEVER_SENT, translatedRanges } from "../routing/coverage.ts";
import { formatRange, mergeRanges } from "../routing/ranges.ts";
import type { ClientConfig, ClientEgress } from "./config.ts";
import type { Mark } from "./mark.ts";

export const CLIENT_TABLE = "egress_nat_client";

/** Why the guard refuses packets: the names of its counters. */
export const REFUSAL_REASONS = [
  /** Of the client, and would have left around the tunnel, or without a gateway. */
  "rejected",
  /** To the client, from where the Egresses' destinations are, and nobody listens. */
  "unheard",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Packets that a guard has refused since it was made. */
export type Refusals = Readonly<Record<RefusalReason, number>>;

function counted(reason: RefusalReason): string {
  return `counter name ${reason}`;
}

export interface GuardInput {
  readonly config: ClientConfig;
  readonly mark: Mark;
  readonly port: number;
  readonly families: readonly {
    readonly family: Family;
    readonly decisions: readonly Decision<ClientEgress>[];
  }[];
}

/**
 * The client's packet filter. Routes alone do not hold: a socket bound to the uplink (SO_BINDTODEVICE needs no
 * privilege) asks for a route on that interface only, and finds the default route.
 */
export function guardTable(input: GuardInput): NftTable {
  return {
    name: CLIENT_TABLE,
    comment: "egress NAT client: packets to an Egress's destinations leave through its tunnel or not at all",
    sets: FAMILIES.flatMap((family) => sets(family, input)),
    counters: REFUSAL_REASONS,
    chains: [refuseChain(), bypassChain(input.mark), ...guardChains(), ...arrivalChains(input)],
  };
}

function sets(family: Family, { families }: GuardInput): NftSet[] {
  const decisionsOf = (wanted: Family) =>
    families.find((candidate) => candidate.family === wanted)?.decisions ?? [];
  const decisions = decisionsOf(family);
  const carriers = [...new Set(decisions.flatMap(({ carrier }) => carrier ?? []))];
  const gateways = carriers.flatMap(({ gateway, port }) =>
    gateway[family] === undefined ? [] : [`${gateway[family]} . ${port}`],
  );
  const peers = normalizeCidrs(carriers.flatMap((carrier) => carrier.peers)).filter(
    (peer) => parseCidr(peer).family === family,
  );
  const address = `${family}_addr`;
  const ranges = (which?: (egress: ClientEgress) => boolean) => {
    const carried = carriedRanges(decisions, which);
    if (family === "ipv4") return carried;
    return mergeRanges([...carried, ...translatedRanges(carriedRanges(decisionsOf("ipv4"), which))]);
  };
  const guarded = mergeRanges([...ranges(), ...prefixesOf(family, NEVER_SENT).map(rangeOf)]);
  return [
    set(family, "guarded", address, "destinations of Egresses", spell(family, guarded), true),
    set(
      family,
      "originating",
      address,
      "destinations where only flows that the client opens use the tunnel",
      spell(
        family,
        ranges((egress) => egress.originatingOnly),
      ),
      true,
    ),
    set(family, "gateways", `${address} . inet_service`, "where outer packets go", unique(gateways), false),
    set(
      family,
      "peers",
      address,
      "where outer packets may come from",
      unique(peers.map((peer) => peer.replace(/\/(32|128)$/, ""))),
      false,
    ),
  ];
}

function set(
  family: Family,
  name: string,
  type: string,
  comment: string,
  elements: readonly string[],
  interval: boolean,
): NftSet {
  return { name: `${name}${VERSION[family]}`, kind: "set", type, interval, comment, elements };
}

function spell(family: Family, ranges: readonly Range[]): string[] {
  return ranges.map((range) => formatRange(family, range));
}

function unique(list: readonly string[]): string[] {
  return [...new Set(list)];
}

function refuseChain(): NftChain {
  return {
    name: "refuse",
    comment: "A program is told at once why it cannot connect.",
    rules: [
      {
        text: `fib saddr type != local ${counted("rejected")} drop`,
        comment: "from an address of somebody else, who would get the error and what it quotes",
      },
      {
        text: `${counted("rejected")} reject with icmpx type admin-prohibited`,
        comment: "an error to this host",
      },
    ],
  };
}

function bypassChain({ mask, value }: Mark): NftChain {
  const keep = ~mask >>> 0;
  const setMark = `meta mark set meta mark and 0x${keep.toString(16)} or 0x${value.toString(16)}`;
  return {
    name: "bypass",
    comment: "Rule 1880 sends this mark to the main table.",
    rules: [
      ...perFamily(
        (ip, v) => `tcp flags & (syn | ack) == syn ${ip} daddr @originating${v} goto refuse`,
        "opens a connection: no reply, whatever conntrack has kept of somebody else's packets",
      ),
      ...perFamily(
        (ip, v) => `${ip} daddr @originating${v} ${setMark} accept`,
        "replies to inbound flows bypass the tunnel",
      ),
    ],
  };
}

/** Either group, at less cost than a set of both: they differ in the last bit. */
const ANY_LINK = `& 0xfffffffe == ${LINK_GROUP.peer}`;

function guardChains(): NftChain[] {
  return [
    {
      name: "tunnel_output",
      comment: "Where the routes lead into a tunnel, or a socket is bound to one.",
      rules: [
        { text: "ct direction reply jump bypass", comment: "replies of this host" },
        { text: `oifgroup ${LINK_GROUP.open} goto refuse`, comment: "no gateway: refused at once" },
      ],
    },
    {
      name: "loopback",
      comment:
        "Another host's address takes no privilege in IPv6 (IPV6_FREEBIND): a program could make up the other side of an " +
        "inbound flow, and answer it around the tunnel. Proxies that keep their clients' addresses have IP_TRANSPARENT.",
      rules: perFamily(
        (ip, v) =>
          `ct state new ${ip} saddr @originating${v} fib saddr type != local socket transparent 0 ${counted("rejected")} drop`,
        "from an address of somebody else",
      ),
    },
    {
      name: "guard",
      hook: "type route hook output priority filter; policy accept;",
      comment: "Fail closed, whatever the routes say. What most packets need comes first.",
      rules: [
        {
          text: `oifgroup ${LINK_GROUP.peer} ct direction original accept`,
          comment: "through the tunnel to a gateway",
        },
        // Address and port together: a port alone would let anything out to it.
        ...perFamily((ip, v) => `${ip} daddr . udp dport @gateways${v} accept`, "outer packets to gateways"),
        { text: `oifgroup ${ANY_LINK} goto tunnel_output`, comment: "into a tunnel all the same" },
        { text: 'oifname "lo" goto loopback', comment: "this host" },
        // Not `ct direction original ... reject`: a packet that conntrack finds invalid has no direction.
        { text: "ct direction reply jump bypass", comment: "replies to inbound flows" },
        {
          text: "meta nfproto ipv6 exthdr rt exists goto refuse",
          comment: "to somebody who would send it on: where to, only its routing header says",
        },
        ...perFamily((ip, v) => `${ip} daddr @guarded${v} goto refuse`, "around the tunnel: refused"),
      ],
    },
  ];
}

function arrivalChains({ config: { uplink }, port }: GuardInput): NftChain[] {
  return [
    {
      name: "answers",
      comment: "What comes through a tunnel answers a flow of this client.",
      rules: [
        { text: "ct state established,related accept", comment: "answers" },
        { text: "drop", comment: "nobody opens a flow to a client, or passes through it, by its tunnel" },
      ],
    },
    {
      name: "listeners",
      comment:
        "Conntrack keeps what passes here, and what a socket sends to where it came from is a reply from then on: so " +
        "nothing stays of what nobody listens for. Of a datagram nobody is told either: the error would have no flow, " +
        "and take the tunnel. A reset belongs to the inbound flow, and leaves as that came.",
      rules: [
        { text: 'iifname "lo" accept', comment: "of this host" },
        {
          text: `ct state new tcp flags & (syn | ack) != syn fib daddr type local ${counted("unheard")} reject with tcp reset`,
          comment:
            "of a connection that conntrack does not know: what its socket sends would be a reply from then on",
        },
        { text: "socket transparent <= 1 accept", comment: "for a socket, whatever its kind" },
        {
          text: `meta l4proto tcp fib daddr type local ${counted("unheard")} reject with tcp reset`,
          comment: "for nobody: the kernel itself does not answer each segment by a reset",
        },
        { text: `${counted("unheard")} drop`, comment: "for nobody" },
      ],
    },
    {
      name: "openings",
      comment: "The first packets of inbound flows, and those of none.",
      rules: [
        {
          text: `meta nfproto ipv6 exthdr rt exists ${counted("unheard")} drop`,
          comment: "with a routing header: to be sent on by this host",
        },
        // ICMP leaves nothing behind by which a flow of this host would be a reply.
        ...perFamily(
          (ip, v) => `meta l4proto { tcp, udp } ${ip} saddr @originating${v} goto listeners`,
          "from where replies bypass the tunnel",
        ),
      ],
    },
    {
      name: "arrivals",
      hook: "type filter hook prerouting priority dstnat + 1; policy accept;",
      comment:
        "What comes out of a tunnel or goes into one, for this host or for containers of its own, and what opens a flow. " +
        "After NAT, so that a port is that of the socket; before conntrack confirms a flow.",
      rules: [
        { text: `iifgroup ${ANY_LINK} goto answers`, comment: "through the tunnel" },
        {
          // Nothing before UDP's header: one for routing would lead on to where only it says.
          text: `ip6 nexthdr udp udp dport ${port} ip6 saddr @peers6 accept`,
          comment: "outer packets of gateways",
        },
        {
          text: `meta nfproto ipv4 udp dport ${port} ip saddr @peers4 accept`,
          comment: "outer packets of gateways",
        },
        {
          text: `udp dport ${port} fib daddr type != unicast drop`,
          comment: "outer packets of anybody else",
        },
        {
          text: "meta l4proto { 4, 41 } fib daddr type != unicast drop",
          comment: "a tunnel without UDP would pass by the peers' check",
        },
        {
          text: `iifname != "${uplink}" ct direction reply goto bypass`,
          comment: "replies of containers in the pod, which are routed after this chain, and not again",
        },
        // The checksum behind a routing header is that of the last destination: to conntrack it is invalid here.
        {
          text: "ct state new,invalid fib daddr type != unicast goto openings",
          comment: "to this host; an established flow asks nothing else",
        },
      ],
    },
  ];
}
