import type { Range } from "../cidr.ts";
import { FAMILIES, type Family } from "../family.ts";
import { perFamily, VERSION } from "../nft/per-family.ts";
import type { NftSet, NftTable } from "../nft/table.ts";
import { PROBE_PREFIXES } from "../probe-addresses.ts";
import { formatRange } from "../ranges.ts";

const ICMP: Readonly<Record<Family, string>> = { ipv4: "icmp", ipv6: "icmpv6" };

export const GATEWAY_TABLE = "egress_nat_gateway";

/** The sets that hold clients: they outlive every other change of the table. */
export const CLIENT_SETS: ReadonlySet<string> = new Set(["clients4", "clients6", "inner4", "inner6"]);

export interface GatewayTableInput {
  readonly uplink: string;
  readonly port: number;
  /** The addresses that clients may reach. */
  readonly destinations: Readonly<Record<Family, readonly Range[]>>;
}

/** The gateway's packet filter: opt-in is enforced here, whatever a client's network namespace says. */
export function gatewayTable({ uplink, port, destinations }: GatewayTableInput): NftTable {
  return {
    name: GATEWAY_TABLE,
    comment: "egress NAT gateway: clients only, as themselves only, to the Egress's destinations only",
    sets: FAMILIES.flatMap((family) => sets(family, destinations[family])),
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
        name: "tunnel_input",
        hook: "type filter hook input priority filter; policy accept;",
        comment:
          "Outer packets of clients get their client's mark, which survives decapsulation. The ct rules of this table " +
          "make conntrack put fragments together first, so that none passes without its UDP header.",
        rules: [
          { text: 'iifname "fou*" goto from_tunnel', comment: "through the tunnel" },
          ...perFamily(
            (ip, v) => `udp dport ${port} meta mark set ${ip} saddr map @clients${v} accept`,
            "outer packets of clients",
          ),
          { text: `udp dport ${port} drop`, comment: "outer packets of anybody else" },
          { text: "meta l4proto { 4, 41 } drop", comment: "a tunnel without UDP would carry no mark" },
          ...perFamily(
            (ip, _, family) => `${ip} daddr ${PROBE_PREFIXES[family]} drop`,
            "probes come through the tunnel only",
          ),
        ],
      },
      {
        name: "inner_source",
        comment: "An inner packet has its client's own source. Its mark has done its work then.",
        rules: [
          ...perFamily(
            (ip, v) => `${ip} saddr . meta mark @inner${v} meta mark set 0 accept`,
            "inner source belongs to the outer one",
          ),
          { text: "drop", comment: "a client speaks for another" },
        ],
      },
      {
        name: "tunnel_prerouting",
        hook: "type filter hook prerouting priority raw; policy accept;",
        comment: "Before conntrack.",
        rules: [{ text: 'iifname "fou*" goto inner_source', comment: "through the tunnel" }],
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
            (ip, v) => `iifname "fou*" oifname "${uplink}" ${ip} daddr @destinations${v} accept`,
            "clients to destinations",
          ),
          {
            text: `iifname "${uplink}" oifname "fou*" ct state established,related accept`,
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
            text: `iifname "fou*" oifname "${uplink}" masquerade fully-random`,
            comment: "clients leave with the gateway's address",
          },
        ],
      },
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
