import type { GatewayBackend } from "../gateway/config.ts";
import { inside } from "./topology.ts";

/** A backend of gateways, as tests see what it has made. */
export interface TestedBackend {
  readonly name: string;
  readonly backend: GatewayBackend;
  /**
   * Whether there is time for more than attacks and what only a packet filter can do: where processors are emulated each
   * process of iptables is slow.
   */
  readonly atLength: boolean;
  /** Of iptables. */
  readonly variant: string;
  /** Whether flows that were let through take a fast path. */
  readonly fastPath: boolean;
  /** A shell command that prints all of its packet filter, without counters. */
  readonly everything: string;
  /** A shell command that prints the IPv4 clients: a line for each holds `mark`. */
  readonly clients: string;
  readonly mark: RegExp;
  /** A shell command that prints what looks first at what comes out of a tunnel link, and what that holds. */
  readonly check: (link: string) => readonly [command: string, text: string];
  /** How many commands are done of a program that is killed before its end: some take many. */
  readonly killedAfter: number;
  /** A shell command that takes the IPv6 rule against routing headers away. */
  readonly allowRoutingHeaders: string;
  /** A shell command that leaves what a program does that is killed while it asks the kernel how it has rules. */
  readonly leftOfAsking: string;
  /** Shell commands that change what the filter does so that every name and every comment stays. */
  readonly underOldNames: readonly string[];
  /** A shell command that takes the IPv4 clients from one set, and not from the other. */
  readonly flushInner: string;
  /** Makes the machine one that has this backend, or undoes that. */
  readonly machine?: readonly [make: string, undo: string];
}

/** At night. */
export const isLong = process.env.E2E_LENGTH === "long";

const TABLE = "inet egress_nat_gateway";

const nftables: TestedBackend = {
  name: "nftables",
  backend: "nftables",
  variant: "",
  atLength: true,
  fastPath: true,
  everything: "nft --stateless list ruleset",
  clients: `nft list map ${TABLE} clients4`,
  mark: /: 0x/g,
  check: (link) => [`nft list table ${TABLE}`, `chain ${link}_ingress`],
  killedAfter: 3,
  leftOfAsking: "nft 'table inet egress_nat_gateway_listing { flags dormant; }'",
  underOldNames: [
    `nft 'chain ${TABLE} forward { policy accept; }'`,
    `nft -a list chain ${TABLE} forward |
      sed -n 's/.* comment "whatever else ~\\(.*\\)" # handle \\(.*\\)/replace rule ${TABLE} forward handle \\2 accept comment "whatever else ~\\1"/p' | nft -f -`,
  ],
  flushInner: `nft flush set ${TABLE} inner4`,
  allowRoutingHeaders: `nft -a list chain ${TABLE} forward |
    sed -n 's/.*"routing_header".* # handle \\(.*\\)/delete rule ${TABLE} forward handle \\1/p' | nft -f -`,
};

function iptables(variant: "nft" | "legacy"): TestedBackend {
  const save = (program: string) => `${program}-${variant}-save | sed 's/^#.*//; s/\\[[0-9:]*\\]//'`;
  return {
    name: `iptables-${variant}`,
    backend: "iptables",
    variant,
    atLength: isLong,
    fastPath: false,
    everything: `${save("iptables")}; ${save("ip6tables")}; ipset save | sed 's/ initval.*//' | sort
      for dev in eth0 fou4 fou6; do for way in ingress egress; do
        tc filter show dev $dev $way 2>/dev/null | sed '/^\\s*index/d'
      done; done; true`,
    clients: "ipset save en-clients4 | sed 's/ initval.*//' | sort",
    mark: /skbmark 0x/g,
    check: (link) => [`tc filter show dev ${link} ingress`, "ipset(en-inner"],
    killedAfter: 11,
    leftOfAsking: `iptables-${variant} -t filter -N EQ-D-invalid`,
    underOldNames: [
      `rules=$(iptables-${variant}-save -t filter | sed -n '/^-A EN-D-not_allowed /s/-j DROP/-j ACCEPT/p')
       printf '*filter\\n:EN-D-not_allowed - [0:0]\\n%s\\nCOMMIT\\n' "$rules" | iptables-${variant}-restore -w 5 --noflush`,
      `tc qdisc del dev fou6 clsact; tc qdisc add dev fou6 clsact
       tc filter add dev fou6 ingress protocol all pref 2 basic action ok
       tc filter add dev fou6 ingress protocol ipv6 pref 1 basic match 'ipset(en-inner6 src,src)' action skbedit mark 0x65670001 pass`,
    ],
    flushInner: "ipset flush en-inner4",
    allowRoutingHeaders: `rules=$(ip6tables-${variant}-save -t filter | sed -n '/-m rt /d; /^-A EN-FORWARD /p')
      printf '*filter\\n:EN-FORWARD - [0:0]\\n%s\\nCOMMIT\\n' "$rules" | ip6tables-${variant}-restore -w 5 --noflush`,
    // One whose kernel does not know nf_tables, as far as iptables can tell.
    ...(variant === "legacy" && {
      machine: [
        "mount --bind /bin/false /usr/sbin/xtables-nft-multi",
        "while umount /usr/sbin/xtables-nft-multi 2>/dev/null; do :; done",
      ] as const,
    }),
  };
}

export const BACKENDS: readonly TestedBackend[] = [
  nftables,
  iptables("nft"),
  ...(isLong ? [iptables("legacy")] : []),
];

/** The packet filter of the gateway. */
export function packetFilter({ everything }: TestedBackend): Promise<string> {
  return inside("gateway", everything);
}
