import type { GatewayBackend } from "../gateway/config.ts";
import { inside } from "./topology.ts";

/** A backend of gateways, as tests see what it has made. */
export interface TestedBackend {
  readonly name: string;
  readonly backend: GatewayBackend;
  /** Whether flows that were let through take a fast path. */
  readonly fastPath: boolean;
  /** A shell command that prints all of its packet filter, without counters. */
  readonly everything: string;
  /** A shell command that prints the IPv4 clients: a line for each holds `mark`. */
  readonly clients: string;
  readonly mark: RegExp;
  /** A shell command that prints what looks first at what comes out of a tunnel link, and what that holds. */
  readonly check: (link: string) => readonly [command: string, text: string];
  /** A shell command that takes the IPv6 rule against routing headers away. */
  readonly allowRoutingHeaders: string;
  /** Makes the machine one that has this backend, or undoes that. */
  readonly machine?: readonly [make: string, undo: string];
}

const TABLE = "inet egress_nat_gateway";

const nftables: TestedBackend = {
  name: "nftables",
  backend: "nftables",
  fastPath: true,
  everything: "nft --stateless list ruleset",
  clients: `nft list map ${TABLE} clients4`,
  mark: /: 0x/g,
  check: (link) => [`nft list table ${TABLE}`, `chain ${link}_ingress`],
  allowRoutingHeaders: `nft -a list chain ${TABLE} forward |
    sed -n 's/.*"routing_header".* # handle \\(.*\\)/delete rule ${TABLE} forward handle \\1/p' | nft -f -`,
};

function iptables(variant: "nft" | "legacy"): TestedBackend {
  const save = (program: string) => `${program}-${variant}-save | sed 's/^#.*//; s/\\[[0-9:]*\\]//'`;
  return {
    name: `iptables-${variant}`,
    backend: "iptables",
    fastPath: false,
    everything: `${save("iptables")}; ${save("ip6tables")}; ipset save | sed 's/ initval.*//' | sort
      for dev in eth0 fou4 fou6; do for way in ingress egress; do
        tc filter show dev $dev $way 2>/dev/null | grep -v '^\\s*index'
      done; done`,
    clients: "ipset save en-clients4 | sed 's/ initval.*//' | sort",
    mark: /skbmark 0x/g,
    check: (link) => [`tc filter show dev ${link} ingress`, "ipset(en-inner"],
    allowRoutingHeaders: `ip6tables-${variant}-save -t filter | sed -n 's/^-A \\(.*-m rt .*\\)/-D \\1/p' |
      { echo '*filter'; cat; echo COMMIT; } | ip6tables-${variant}-restore --noflush`,
    // One whose kernel does not know nf_tables, as far as iptables can tell.
    ...(variant === "legacy" && {
      machine: [
        "mount --bind /bin/false /usr/sbin/xtables-nft-multi",
        "umount /usr/sbin/xtables-nft-multi",
      ] as const,
    }),
  };
}

export const BACKENDS: readonly TestedBackend[] = [nftables, iptables("nft"), iptables("legacy")];

/** The packet filter of the gateway. */
export function packetFilter({ everything }: TestedBackend): Promise<string> {
  return inside("gateway", everything);
}
