import type { Family } from "@egress-nat/addresses";
import type { DropReason, GatewayPolicy } from "../../gateway/policy.ts";
import { hex, VERSION } from "../spelling.ts";
import { IP, perFamily } from "./per-family.ts";
import { chains, type NftChain } from "./table.ts";

const ICMP: Readonly<Record<Family, string>> = { ipv4: "icmp", ipv6: "icmpv6" };

export const FAST_PATH = "fast_path";

/** The chain that sees first what comes through a tunnel link. */
export function ingressChain(link: string): string {
  return `${link}_ingress`;
}

/**
 * The chains of a gateway, in the order of a packet's way.
 *
 * @param fastPath whether the kernel has flowtables
 */
export function gatewayChains(policy: GatewayPolicy, fastPath: boolean): NftChain[] {
  return chains(
    [
      arrivals(policy),
      ...policy.tunnels.map((tunnel) => ingress(tunnel, policy)),
      tracked(policy),
      forward(policy, fastPath),
      departures(policy),
    ].join(""),
  );
}

function drop(reason: DropReason): string {
  return `counter name ${reason} drop`;
}

function arrivals({ uplink, port, group, probes, marks }: GatewayPolicy): string {
  return `
    # No client reaches the gateway itself.
    chain from_tunnel {
      # probes of the tunnel: the kernel answers, no socket is reached
      ${perFamily((ip, _, family) => `${ip} daddr ${probes[family]} ${ICMP[family]} type echo-request accept`)}
      # no client reaches the gateway itself
      ${drop("to_gateway")}
    }

    # Outer packets of clients get their client's mark, which survives decapsulation. Nobody asks for their flow.
    chain outer {
      # of clients
      ${perFamily((ip, v) => `meta mark set ${ip} saddr map @clients${v} notrack accept`)}
      # of anybody else: ends after conntrack, unless it is the answer to a flow that NAT gave this port
      meta mark set 0
    }

    # What goes into a tunnel. The ct rules of this table make conntrack put fragments together before this chain, so
    # that none passes without its UDP header. At a change of backend the mark is not to be reset by iptables' raw.
    chain arrivals {
      type filter hook prerouting priority raw + 1; policy accept;
      # outer packets
      iif "${uplink}" udp dport ${port} goto outer
      # outer packets from within
      udp dport ${port} fib daddr type != unicast goto outer
      # a tunnel without UDP would carry no mark
      iifgroup != ${group} meta l4proto { 4, 41 } fib daddr type != unicast ${drop("no_client")}
      # probes come through the tunnel only
      ${perFamily((ip, _, family) => `iifgroup != ${group} ${ip} daddr ${probes[family]} drop`)}
    }

    # Outer packets to clients.
    chain outer_output {
      type filter hook output priority raw; policy accept;
      # nobody asks for their flow; the mark lets them leave
      udp dport ${port} meta mark set ${hex(marks.outer)} notrack
    }
  `;
}

/**
 * Before the fast path, which is at the same hook, and before conntrack puts fragments together. The kernel takes such
 * a chain away with its link.
 */
function ingress({ family, name }: GatewayPolicy["tunnels"][number], { marks }: GatewayPolicy): string {
  return `
    # An inner packet has its client's own source.
    chain ${ingressChain(name)} {
      type filter hook ingress device "${name}" priority filter - 1; policy accept;
      # inner source belongs to the outer one
      ${IP[family]} saddr . meta mark @inner${VERSION[family]} meta mark set ${hex(marks.passed)} accept
      # a client speaks for another
      ${drop("foreign_source")}
    }
  `;
}

function tracked({ uplink, port, group, marks }: GatewayPolicy): string {
  return `
    # After conntrack, before routing. Outer packets of clients, most of what comes, leave each rule at once.
    chain tracked {
      type filter hook prerouting priority mangle; policy accept;
      # answers to flows that were translated get the mark that leads into a tunnel
      ct direction reply ct status snat iif "${uplink}" meta mark set ${hex(marks.passed)} accept
      # through the tunnel, to this host
      iifgroup ${group} fib daddr type != unicast goto from_tunnel
      # outer packets of anybody else
      meta mark 0 udp dport ${port} ${drop("no_client")}
    }
  `;
}

function forward({ uplink, group }: GatewayPolicy, fastPath: boolean): string {
  const allowed = perFamily(
    (ip, v) => `iifgroup ${group} oifname "${uplink}" ${ip} daddr @destinations${v} goto to_destination`,
  );
  const answers = perFamily(
    (ip, v) =>
      `iifname "${uplink}" oifgroup ${group} ct original ${ip} daddr @destinations${v} ct state established,related accept`,
  );
  return `
    # Established: an answer has come. Not from the first packet on, whose segment size is to be clamped.
    chain to_destination {
      # further packets of the flow take the fast path, both ways
      ${fastPath ? `meta l4proto { tcp, udp } ct state established flow add @${FAST_PATH}` : ""}
      # clients to destinations
      accept
    }

    # Clients to destinations, answers back, nothing else: no neighbour routes packets to clients.
    chain forward {
      type filter hook forward priority filter; policy drop;
      # the tunnel's MTU is smaller than what both ends see: clamp the segment size
      tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu
      # would leave without NAT
      ct state invalid,untracked ${drop("invalid")}
      # a routing header names places that no rule has seen
      exthdr rt exists ${drop("routing_header")}
      # clients to destinations
      ${allowed}
      # answers of destinations, and of routers on the way there
      ${answers}
      # whatever else
      ${drop("not_allowed")}
    }
  `;
}

// To the kernel an outer packet, too, has come from the tunnel's link. That it is not tracked does not tell it: nor is
// neighbour discovery (nf_conntrack_proto_icmpv6.c), which a client may send anywhere.
function departures({ uplink, group, marks, addresses }: GatewayPolicy): string {
  const perOwnAddress = (text: (ip: string, version: string, address: string) => string) =>
    perFamily((ip, v, family) => (addresses[family] === undefined ? "" : text(ip, v, addresses[family])));
  return `
    # Random ports: two clients that use one port do not wait for each other.
    chain source_nat {
      type nat hook postrouting priority srcnat; policy accept;
      # clients leave with the gateway's address
      ${perOwnAddress((ip, _, own) => `iifgroup ${group} oifname "${uplink}" snat ${ip} to ${own} fully-random`)}
    }

    # What no other chain has stopped or translated ends here.
    chain from_client {
      # to destinations, with the gateway's address
      ${perOwnAddress((ip, v, own) => `oifname "${uplink}" ${ip} saddr ${own} ${ip} daddr @destinations${v} accept`)}
      # would leave with a client's address, or to another place
      ${drop("untranslated")}
    }

    # Fail closed, whatever became of the chains before.
    chain departures {
      type filter hook postrouting priority srcnat + 1; policy accept;
      # of clients
      meta mark != ${hex(marks.outer)} iifgroup ${group} goto from_client
    }
  `;
}
