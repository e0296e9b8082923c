import { FAMILIES, type Family, formatRange, type Range } from "@egress-nat/addresses";
import type { Mark } from "../../client/mark.ts";
import { type ClientPolicy, REFUSAL_REASONS, type RefusalReason } from "../../client/policy.ts";
import { LINK_GROUP } from "../../iproute/links.ts";
import { PROBE_PREFIXES } from "../../routing/probe-addresses.ts";
import { hex, VERSION } from "../spelling.ts";
import { waySets, ways } from "./guard-ways.ts";
import { perFamily } from "./per-family.ts";
import { chains, type NftSet, type NftTable } from "./table.ts";

export const CLIENT_TABLE = "egress_nat_client";

/**
 * The client's packet filter. Routes alone do not hold: a socket bound to the uplink (SO_BINDTODEVICE needs no
 * privilege) asks for a route on that interface only, and finds the default route.
 */
export function guardTable(policy: ClientPolicy): NftTable {
  return {
    name: CLIENT_TABLE,
    comment: "egress NAT client: packets to an Egress's destinations leave through its tunnel or not at all",
    sets: [...FAMILIES.flatMap((family) => sets(family, policy)), ...waySets(policy)],
    counters: REFUSAL_REASONS,
    chains: [
      ...chains(refusals(policy.replies)),
      ...ways(policy),
      ...chains([intoTunnels, departures, rerouted, openings, arrivals].map((part) => part(policy)).join("")),
    ],
  };
}

function counted(reason: RefusalReason): string {
  return `counter name ${reason}`;
}

function sets(family: Family, { families }: ClientPolicy): NftSet[] {
  const { guarded, originating, gateways, peers } = families[family];
  const address = `${family}_addr`;
  const spell = (ranges: readonly Range[]) => ranges.map((range) => formatRange(family, range));
  const ranges = { type: address, interval: true };
  const originatingOnly = "destinations where only flows that the client opens use the tunnel";
  const found: Omit<NftSet, "kind">[] = [
    { ...ranges, name: "guarded", comment: "destinations of Egresses", elements: spell(guarded) },
    { ...ranges, name: "originating", comment: originatingOnly, elements: spell(originating) },
    { name: "outer", type: address, comment: "where outer packets go", elements: gateways },
    { name: "peers", type: address, comment: "where outer packets may come from", elements: peers },
  ];
  return found.map((set) => ({ ...set, kind: "set", name: `${set.name}${VERSION[family]}` }));
}

function refusals({ mask, value }: Mark): string {
  const keep = ~mask >>> 0;
  const setMark = `meta mark set meta mark and ${hex(keep)} or ${hex(value)}`;
  return `
    # A program is told at once why it cannot connect.
    chain refuse {
      # from an address of somebody else, who would get the error and what it quotes
      fib saddr type != local ${counted("rejected")} drop
      # an error to this host
      ${counted("rejected")} reject with icmpx type admin-prohibited
    }

    # Rule 1880 sends this mark to the main table.
    chain bypass {
      # opens a connection: no reply, whatever conntrack has kept of somebody else's packets
      ${perFamily((ip, v) => `tcp flags & (syn | ack) == syn ${ip} daddr @originating${v} goto refuse`)}
      # replies to inbound flows bypass the tunnel
      ${perFamily((ip, v) => `${ip} daddr @originating${v} ${setMark} accept`)}
    }
  `;
}

/** Either group, at less cost than a set of both: they differ in the last bit. */
const ANY_LINK = `& 0xfffffffe == ${LINK_GROUP.peer}`;

function intoTunnels({ oneWay, replies: { mask } }: ClientPolicy): string {
  const mark = `ct mark & ${hex(mask)}`;
  // With one way only, a link that is not the flow's own leads to no gateway.
  const elsewhere = oneWay ? "" : `${mark} vmap @kept`;
  return `
    # Where the routes lead into a tunnel, or a socket is bound to one.
    chain tunnel_output {
      # to this host, by NAT of its own, such as to a proxy
      ct status dnat fib daddr type local goto loopback
      # replies of this host
      ct direction reply jump bypass
      ${unanswered(mask)}
      # to the gateway that the flow began with
      ${elsewhere}
      # from an address of somebody else, who would get the error and what it quotes
      ${mark} != 0x0 fib saddr type != local ${counted("rejected")} drop
      # of a gateway that is gone
      ${mark} != 0x0 goto over
      # probes, each through the tunnel that it is for
      ${perFamily((ip, _, family) => `oifgroup ${LINK_GROUP.peer} ${ip} daddr ${PROBE_PREFIXES[family]} accept`)}
      # a flow begins
      oifname vmap @choices
      oifgroup ${LINK_GROUP.peer} meta nfproto vmap @choices_late
      # no gateway: refused at once
      goto refuse
    }

    # A connection has an end that it cannot do without, and a program is told of it. Anything else is told as well, and
    # begins anew by its next packet.
    chain over {
      # a connection
      meta l4proto tcp ${counted("rejected")} reject with tcp reset
      # anything else
      ${clearPin(mask)} ${counted("rejected")} reject with icmpx type host-unreachable
    }
  `;
}

/** What nobody answers is sent again and again: to a gateway that has lost its way out, or is gone, for nothing. */
function unanswered(mask: number): string {
  return `
      # nobody has answered, and flows begin with other gateways: it begins anew
      ct state new ct mark & ${hex(mask)} != @picked ${clearPin(mask)}
  `;
}

function clearPin(mask: number): string {
  return `ct mark set ct mark and ${hex(~mask >>> 0)}`;
}

// Outer packets by address and port together: a port alone would let anything out to it. Replies not by `ct direction
// original ... reject`: a packet that conntrack finds invalid has no direction.
function departures({ port, oneWay, replies: { mask } }: ClientPolicy): string {
  const mark = `ct mark & ${hex(mask)}`;
  const settled = oneWay ? `${mark} vmap @kept` : `oifname . ${mark} vmap @pinned`;
  const foreign = perFamily(
    (ip, v) =>
      `ct state new ${ip} saddr @originating${v} fib saddr type != local socket transparent 0 ${counted("rejected")} drop`,
  );
  return `
    # Another host's address takes no privilege in IPv6 (IPV6_FREEBIND): a program could make up the other side of an
    # inbound flow, and answer it around the tunnel. Proxies that keep their clients' addresses have IP_TRANSPARENT.
    chain loopback {
      # from an address of somebody else
      ${foreign}
    }

    # Fail closed, whatever the routes say. What most packets need comes first.
    chain guard {
      type route hook output priority filter; policy accept;
      # to the gateway that the flow began with
      oifgroup ${LINK_GROUP.peer} ${settled}
      # outer packets to gateways
      ${perFamily((ip, v) => `udp dport ${port} ${ip} daddr @outer${v} accept`)}
      # into a tunnel all the same
      oifgroup ${ANY_LINK} goto tunnel_output
      # this host
      oifname "lo" goto loopback
      # replies to inbound flows
      ct direction reply jump bypass
      # to somebody who would send it on: where to, only its routing header says, or its source route
      meta nfproto ipv6 exthdr rt exists goto refuse
      ip option lsrr exists goto refuse
      ip option ssrr exists goto refuse
      # around the tunnel: refused
      ${perFamily((ip, v) => `${ip} daddr @guarded${v} goto refuse`)}
    }
  `;
}

/** For packets that the guard has marked. */
function rerouted({ port, oneWay, replies: { mask, value } }: ClientPolicy): string {
  if (oneWay) return "";
  return `
    # Whatever is marked for a gateway was routed after the guard had seen it.
    chain rerouted {
      type filter hook postrouting priority filter; policy accept;
      # most packets
      meta mark 0x0 accept
      # for no gateway
      meta mark & ${hex(mask)} { 0x0, ${hex(value)} } accept
      # through a tunnel
      oifgroup ${ANY_LINK} accept
      # to this host, by NAT of its own
      oifname "lo" accept
      # outer packets to gateways
      ${perFamily((ip, v) => `udp dport ${port} ${ip} daddr @outer${v} accept`)}
      # around the tunnel
      ${counted("rejected")} drop
    }
  `;
}

// ICMP leaves nothing behind by which a flow of this host would be a reply.
function openings(): string {
  return `
    # What comes through a tunnel answers a flow of this client.
    chain answers {
      # answers
      ct state established,related accept
      # nobody opens a flow to a client, or passes through it, by its tunnel
      drop
    }

    # Conntrack keeps what passes here, and what a socket sends to where it came from is a reply from then on: so
    # nothing stays of what nobody listens for. Of a datagram nobody is told either: the error would have no flow,
    # and take the tunnel. A reset belongs to the inbound flow, and leaves as that came.
    chain listeners {
      # of this host
      iifname "lo" accept
      # of a connection that conntrack does not know: what its socket sends would be a reply from then on
      ct state new tcp flags & (syn | ack) != syn fib daddr type local ${counted("unheard")} reject with tcp reset
      # for a socket, whatever its kind
      socket transparent <= 1 accept
      # for nobody: the kernel itself does not answer each segment by a reset
      meta l4proto tcp fib daddr type local ${counted("unheard")} reject with tcp reset
      # for nobody
      ${counted("unheard")} drop
    }

    # The first packets of inbound flows, and those of none.
    chain openings {
      # with a routing header: to be sent on by this host
      meta nfproto ipv6 exthdr rt exists ${counted("unheard")} drop
      # from where replies bypass the tunnel
      ${perFamily((ip, v) => `meta l4proto { tcp, udp } ${ip} saddr @originating${v} goto listeners`)}
    }
  `;
}

// In outer packets of gateways nothing stands before UDP's header: one for routing would lead on to where only it says.
// The checksum behind a routing header is that of the last destination: to conntrack it is invalid here.
function arrivals({ uplink, port, replies: { mask, value } }: ClientPolicy): string {
  const mark = `ct mark & ${hex(mask)}`;
  return `
    # What containers in the pod send, when it is routed: through a tunnel or not at all, as what the pod itself sends.
    chain passing {
      type filter hook forward priority filter; policy accept;
      # into a tunnel
      oifgroup ${ANY_LINK} accept
      # out of one
      iifgroup ${ANY_LINK} accept
      # replies to inbound flows
      meta mark & ${hex(mask)} == ${hex(value)} accept
      # to somebody who would send it on: where to, only its routing header says, or its source route
      meta nfproto ipv6 exthdr rt exists ${counted("rejected")} drop
      ip option lsrr exists ${counted("rejected")} drop
      ip option ssrr exists ${counted("rejected")} drop
      # around the tunnel
      ${perFamily((ip, v) => `${ip} daddr @guarded${v} ${counted("rejected")} drop`)}
    }

    # What containers in the pod send is routed after this chain, and not again.
    chain forwarding {
      # replies
      ct direction reply goto bypass
      ${unanswered(mask)}
      # to the gateway that the flow began with
      ${mark} vmap @kept
      # of a gateway that is gone
      ${mark} != 0x0 goto over
      # a flow begins, or has begun before there were marks
      ${perFamily((ip, v) => `${ip} daddr @guarded${v} fib daddr . mark oifname vmap @choices_ahead`)}
    }

    # What comes out of a tunnel or goes into one, for this host or for containers of its own, and what opens a flow.
    # After NAT, so that a port is that of the socket; before conntrack confirms a flow.
    chain arrivals {
      type filter hook prerouting priority dstnat + 1; policy accept;
      # through the tunnel
      iifgroup ${ANY_LINK} goto answers
      # outer packets of gateways
      ip6 nexthdr udp udp dport ${port} ip6 saddr @peers6 accept
      meta nfproto ipv4 udp dport ${port} ip saddr @peers4 accept
      # outer packets of anybody else
      udp dport ${port} fib daddr type != unicast drop
      # a tunnel without UDP would pass by the peers' check
      meta l4proto { 4, 41 } fib daddr type != unicast drop
      # of containers in the pod
      iifname != { "lo", "${uplink}" } jump forwarding
      # to this host; an established flow asks nothing else
      ct state new,invalid fib daddr type != unicast goto openings
    }
  `;
}
