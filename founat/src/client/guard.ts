import { normalizeCidrs, parseCidr, type Range } from "../cidr.ts";
import { carriedRanges, type Decision } from "../coverage.ts";
import { FAMILIES, type Family } from "../family.ts";
import { linkName, openLink } from "../iproute/links.ts";
import { perFamily, VERSION } from "../nft/per-family.ts";
import type { NftChain, NftSet, NftTable } from "../nft/table.ts";
import { formatRange } from "../ranges.ts";
import type { ClientConfig, ClientEgress } from "./config.ts";
import type { Mark } from "./mark.ts";

export const CLIENT_TABLE = "egress_nat_client";

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
    chains: [
      bypassChain(input.mark),
      {
        name: "forwarded_replies",
        hook: "type filter hook prerouting priority mangle; policy accept;",
        comment: "What the pod forwards (containers in the pod) is routed after prerouting, and not again.",
        rules: [
          {
            text: `iifname != "${input.config.uplink}" iifname != "fou*" ct direction reply goto bypass`,
            comment: "replies of containers in the pod",
          },
        ],
      },
      ...guardChains(),
      ...answersChains(input.port),
    ],
  };
}

function sets(family: Family, { families }: GuardInput): NftSet[] {
  const decisions = families.find((candidate) => candidate.family === family)?.decisions ?? [];
  const carriers = [...new Set(decisions.flatMap(({ carrier }) => carrier ?? []))];
  const gateways = carriers.flatMap(({ gateway, port }) =>
    gateway[family] === undefined ? [] : [`${gateway[family]} . ${port}`],
  );
  const peers = normalizeCidrs(carriers.flatMap((carrier) => carrier.peers)).filter(
    (peer) => parseCidr(peer).family === family,
  );
  const address = `${family}_addr`;
  const ranges = (which?: (egress: ClientEgress) => boolean) =>
    spell(family, carriedRanges(decisions, which));
  return [
    set(family, "guarded", address, "destinations of Egresses", ranges(), true),
    set(
      family,
      "originating",
      address,
      "destinations where only flows that the client opens use the tunnel",
      ranges((egress) => egress.originatingOnly),
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

function bypassChain({ mask, value }: Mark): NftChain {
  const keep = ~mask >>> 0;
  const setMark = `meta mark set meta mark and 0x${keep.toString(16)} or 0x${value.toString(16)}`;
  return {
    name: "bypass",
    comment: "Rule 1880 sends this mark to the main table.",
    rules: perFamily(
      (ip, v) => `${ip} daddr @originating${v} ${setMark} accept`,
      "replies to inbound flows bypass the tunnel",
    ),
  };
}

/** Where routes lead that have no gateway. */
const LINKS_OF_NO_GATEWAY = FAMILIES.map((family) => `"${linkName(openLink(family))}"`).join(", ");

function guardChains(): NftChain[] {
  const reject = "reject with icmpx type admin-prohibited";
  return [
    {
      name: "tunnel_output",
      comment: "Where the routes lead into a tunnel, or a socket is bound to one.",
      rules: [
        { text: "ct direction reply jump bypass", comment: "replies of this host" },
        { text: `oifname { ${LINKS_OF_NO_GATEWAY} } ${reject}`, comment: "no gateway: refused at once" },
      ],
    },
    {
      name: "guard",
      hook: "type route hook output priority filter; policy accept;",
      comment: "Fail closed, whatever the routes say.",
      rules: [
        { text: 'oifname "fou*" goto tunnel_output', comment: "through the tunnel" },
        // Address and port together: a port alone would let anything out to it.
        ...perFamily(
          (ip, v) => `meta l4proto udp ${ip} daddr . udp dport @gateways${v} accept`,
          "outer packets to gateways",
        ),
        { text: 'oifname "lo" accept', comment: "this host" },
        // Not `ct direction original ... reject`: a packet that conntrack finds invalid has no direction.
        ...perFamily(
          (ip, v) => `ct direction reply ${ip} daddr @originating${v} accept`,
          "replies to inbound flows",
        ),
        ...perFamily((ip, v) => `${ip} daddr @guarded${v} ${reject}`, "around the tunnel: refused"),
      ],
    },
  ];
}

function answersChains(port: number): NftChain[] {
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
      name: "outer",
      comment: "Outer packets come from gateways only.",
      rules: [
        ...perFamily((ip, v) => `${ip} saddr @peers${v} accept`, "of gateways"),
        { text: "drop", comment: "of anybody else" },
      ],
    },
    {
      name: "tunnel_input",
      hook: "type filter hook input priority filter; policy accept;",
      comment: "What comes out of a tunnel, and what goes into one.",
      rules: [
        { text: 'iifname "fou*" goto answers', comment: "through the tunnel" },
        { text: `udp dport ${port} goto outer`, comment: "outer packets" },
        {
          text: "meta l4proto { 4, 41 } drop",
          comment: "a tunnel without UDP would pass by the peers' check",
        },
      ],
    },
    {
      name: "tunnel_forward",
      hook: "type filter hook forward priority filter; policy accept;",
      comment: "What a client forwards for containers of its own gets its answers.",
      rules: [{ text: 'iifname "fou*" goto answers', comment: "through the tunnel" }],
    },
  ];
}
