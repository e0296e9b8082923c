import { normalizeCidrs, parseCidr, type Range } from "../cidr.ts";
import { carriedRanges, type Decision } from "../coverage.ts";
import { FAMILIES, type Family } from "../family.ts";
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
      repliesChain("replies", "type route hook output priority mangle; policy accept;", input, [
        'oifname "fou*"',
      ]),
      // What the pod forwards (containers in the pod) is routed after prerouting, and not again.
      repliesChain(
        "forwarded_replies",
        "type filter hook prerouting priority mangle; policy accept;",
        input,
        [`iifname != "${input.config.uplink}" iifname != "fou*"`],
      ),
      guardChain(),
      inputChain(input.port),
      forwardChain(),
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
      "closed",
      address,
      "destinations whose Egress has no gateway address of this family",
      ranges((egress) => egress.gateway[family] === undefined),
      true,
    ),
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

function repliesChain(name: string, hook: string, { mark }: GuardInput, match: readonly string[]): NftChain {
  const keep = ~mark.mask >>> 0;
  const setMark = `meta mark set meta mark and 0x${keep.toString(16)} or 0x${mark.value.toString(16)}`;
  return {
    name,
    hook,
    comment: "Replies to inbound flows leave as they came: rule 1880 sends this mark to the main table.",
    rules: perFamily(
      (ip, v) => `${match.join(" ")} ct direction reply ${ip} daddr @originating${v} ${setMark}`,
      "replies to inbound flows bypass the tunnel",
    ),
  };
}

function guardChain(): NftChain {
  const reject = "reject with icmpx type admin-prohibited";
  return {
    name: "guard",
    hook: "type filter hook output priority filter; policy accept;",
    comment: "Fail closed, whatever the routes say.",
    rules: [
      { text: 'oifname "lo" accept', comment: "this host" },
      // Address and port together: a port alone would let anything out to it.
      ...perFamily(
        (ip, v) => `meta l4proto udp ${ip} daddr . udp dport @gateways${v} accept`,
        "outer packets to gateways",
      ),
      // Not `ct direction original ... reject`: a packet that conntrack finds invalid has no direction.
      ...perFamily(
        (ip, v) => `ct direction reply ${ip} daddr @originating${v} accept`,
        "replies to inbound flows",
      ),
      ...perFamily((ip, v) => `${ip} daddr @closed${v} ${reject}`, "no gateway: refused at once"),
      { text: 'oifname "fou*" accept', comment: "through the tunnel" },
      ...perFamily((ip, v) => `${ip} daddr @guarded${v} ${reject}`, "around the tunnel: refused"),
    ],
  };
}

function inputChain(port: number): NftChain {
  return {
    name: "tunnel_input",
    hook: "type filter hook input priority filter; policy accept;",
    comment: "Tunnelled packets come from gateways only, and are answers to this client only.",
    rules: [
      { text: 'iifname "fou*" ct state established,related accept', comment: "answers" },
      { text: 'iifname "fou*" drop', comment: "nobody opens a flow to a client through the tunnel" },
      { text: "meta l4proto { 4, 41 } drop", comment: "a tunnel without UDP would pass by the peers' check" },
      ...perFamily((ip, v) => `udp dport ${port} ${ip} saddr @peers${v} accept`, "outer packets of gateways"),
      { text: `udp dport ${port} drop`, comment: "outer packets of anybody else" },
    ],
  };
}

function forwardChain(): NftChain {
  return {
    name: "tunnel_forward",
    hook: "type filter hook forward priority filter; policy accept;",
    comment:
      "A client relays nothing for others; what it forwards for containers of its own gets its answers.",
    rules: [
      {
        text: 'iifname "fou*" ct state != { established, related } drop',
        comment: "nobody passes through a client",
      },
    ],
  };
}
