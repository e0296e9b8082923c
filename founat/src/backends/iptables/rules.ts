import type { Family } from "@egress-nat/addresses";
import type { DropReason, GatewayPolicy } from "../../gateway/policy.ts";
import { hex } from "../spelling.ts";
import { setName } from "./sets.ts";

const ICMP: Readonly<Record<Family, { readonly protocol: string; readonly echoRequest: string }>> = {
  ipv4: { protocol: "icmp", echoRequest: "-p icmp --icmp-type echo-request" },
  ipv6: { protocol: "ipv6-icmp", echoRequest: "-p ipv6-icmp --icmpv6-type echo-request" },
};

/** What is not sent to one other host. Of IPv6 the kernel looks at scopes for one type, at routes for others (xt_addrtype.c). */
const NO_UNICAST: Readonly<Record<Family, readonly string[]>> = {
  ipv4: ["-m addrtype ! --dst-type UNICAST"],
  ipv6: ["-m addrtype --dst-type LOCAL,ANYCAST", "-m addrtype --dst-type MULTICAST"],
};

/** A chain drops and counts: counters begin anew when other rules of a chain are written. */
const drop = (reason: DropReason) => `-j EN-D-${reason}`;

type Words = ReturnType<typeof wordsOf>;

function wordsOf(policy: GatewayPolicy, family: Family) {
  const { port, group, uplink } = policy;
  return {
    ...{ ...policy, ...ICMP[family], family, own: policy.addresses[family], probes: policy.probes[family] },
    clients: setName("clients", family),
    allowed: setName("allowed", family),
    fromTunnel: `-m devgroup --src-group ${hex(group)}`,
    toTunnel: `-m devgroup --dst-group ${hex(group)}`,
    outer: `-p udp --dport ${port}`,
    translated: `-i ${uplink} -m conntrack --ctdir REPLY --ctstate SNAT`,
    noUnicast: (rule: (type: string) => string) => NO_UNICAST[family].map(rule).join("\n"),
  };
}

/**
 * The rules of a gateway for one family, as `iptables-restore` reads them: what leads out of a tunnel, and what nothing
 * has translated, is for filters.ts. A comment is for the rules after it, up to the next.
 */
export function gatewayRules(policy: GatewayPolicy, family: Family): string {
  const words = wordsOf(policy, family);
  return withComments([filter(words), nat(words), mangle(words), raw(words)].join(""));
}

function filter({ family, protocol, uplink, fromTunnel, toTunnel, allowed }: Words): string {
  return `*filter
# clients to destinations, answers back, nothing else
-A FORWARD -j EN-FORWARD
# would leave without NAT
-A EN-FORWARD -m conntrack --ctstate INVALID,UNTRACKED ${drop("invalid")}
# a routing header names places that no rule has seen
${family === "ipv6" ? `-A EN-FORWARD -m rt ${drop("routing_header")}` : ""}
# clients to destinations
-A EN-FORWARD ${fromTunnel} -o ${uplink} -m set --match-set ${allowed} dst -j RETURN
# answers of destinations
-A EN-FORWARD -i ${uplink} ${toTunnel} -m set --match-set ${allowed} src -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN
# answers of routers on the way there
-A EN-FORWARD -i ${uplink} ${toTunnel} -p ${protocol} -m conntrack --ctstate RELATED -j RETURN
# whatever else
-A EN-FORWARD ${drop("not_allowed")}
`;
}

function nat({ uplink, marks, own, allowed }: Words): string {
  if (own === undefined) return "";
  const passed = `-o ${uplink} -m mark --mark ${hex(marks.passed)} -m set --match-set ${allowed} dst`;
  return `*nat
# random ports: two clients that use one port do not wait for each other
-A POSTROUTING -j EN-POSTROUTING
# clients leave with the gateway's address
-A EN-POSTROUTING ${passed} -j SNAT --to-source ${own} --random-fully
`;
}

function mangle(of: Words): string {
  return `*mangle
# after conntrack, before routing
-A PREROUTING -j EN-PREROUTING
# through the tunnel, to this host
${of.noUnicast((type) => `-A EN-PREROUTING ${of.fromTunnel} ${type} -g EN-FROM-TUNNEL`)}
# outer packets of clients get their mark, which survives decapsulation
-A EN-PREROUTING ${of.outer} -m conntrack --ctstate UNTRACKED -j SET --map-set ${of.clients} src --map-mark
# answers to flows that were translated get the mark that leads into a tunnel
-A EN-PREROUTING ${of.translated} -j MARK --set-mark ${hex(of.marks.passed)}
# outer packets of anybody else
-A EN-PREROUTING ${of.outer} -m mark --mark 0 ${drop("no_client")}
# probes of the tunnel: the kernel answers, no socket is reached
-A EN-FROM-TUNNEL -d ${of.probes} ${of.echoRequest} -j RETURN
# no client reaches the gateway itself
-A EN-FROM-TUNNEL ${drop("to_gateway")}
# the tunnel's MTU is smaller than what both ends see
-A FORWARD -j EN-CLAMP
-A EN-CLAMP -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
`;
}

function raw({ uplink, marks, clients, fromTunnel, outer, probes, noUnicast }: Words): string {
  const plainTunnel = (type: string) =>
    [4, 41].map((protocol) => `-A EN-ARRIVALS -p ${protocol} ${type} ${drop("no_client")}`).join("\n");
  return `*raw
# what goes into a tunnel
-A PREROUTING -j EN-ARRIVALS
# what comes out of one was looked at before
-A EN-ARRIVALS ${fromTunnel} -j RETURN
# outer packets
-A EN-ARRIVALS -i ${uplink} ${outer} -g EN-OUTER
# outer packets from within
${noUnicast((type) => `-A EN-ARRIVALS ${outer} ${type} -g EN-OUTER`)}
# a tunnel without UDP would carry no mark
${noUnicast(plainTunnel)}
# probes come through the tunnel only
-A EN-ARRIVALS -d ${probes} -j DROP
# of anybody else: ends after conntrack, unless it is the answer to a flow that NAT gave this port
-A EN-OUTER -j MARK --set-mark 0
# of clients: nobody asks for their flow
-A EN-OUTER -m set --match-set ${clients} src -j CT --notrack
# outer packets to clients: the mark lets them leave
-A OUTPUT -j EN-OUTER-OUTPUT
-A EN-OUTER-OUTPUT ${outer} -j MARK --set-mark ${hex(marks.outer)}
-A EN-OUTER-OUTPUT ${outer} -j CT --notrack
`;
}

function withComments(script: string): string {
  let comment = "";
  const lines = script.split("\n").flatMap((line) => {
    if (line.startsWith("# ")) comment = line.slice(2);
    if (line === "" || line.startsWith("#")) return [];
    return [line.replace(/(?= -[jg] )/, ` -m comment --comment "${comment}"`)];
  });
  return `${lines.join("\n")}\n`.replaceAll(/^\*[^*]*/gm, (table) => {
    const drops = new Set(table.match(/\bEN-D-\w+/g));
    return table + Array.from(drops, (chain) => `-A ${chain} -j DROP\n`).join("");
  });
}
