import { FOU_PORT } from "../egress.ts";
import { TARGET } from "../throughput/paths.ts";
import { routedScript } from "../throughput/topology.ts";

/**
 * Ways from a client to the target: `direct`, `plain` by a gateway that forwards and masquerades, `hand` by one with a link
 * and a route for each client, as coil v2 makes them, and `product` by founat's.
 */
const WAYS = ["direct", "plain", "hand", "product"] as const;
export type Way = (typeof WAYS)[number];

export function clientOf(way: Way) {
  return end(way, "client", 2);
}

export function gatewayOf(way: Exclude<Way, "direct">) {
  return end(way, "gateway", 3);
}

/** @param index of clients that are not there */
export function otherClient(index: number) {
  return { ipv4: `10.200.${index >> 8}.${index & 255}`, ipv6: `fd00:200::${(index + 1).toString(16)}` };
}

function end(way: Way, kind: string, host: number) {
  const net = WAYS.indexOf(way) + 1;
  return { netns: `${way}-${kind}`, ipv4: `10.${net}.${host}.2`, ipv6: `fd00:${net}:${host}::2` };
}

/** A script that makes the namespaces, the server at the target, and the gateways that are made by hand, without clients. */
export function waysScript(folder: string): string {
  const gateways = [gatewayOf("plain"), gatewayOf("hand"), gatewayOf("product")];
  const { ipv4, ipv6 } = clientOf("plain");
  const hand = gatewayOf("hand").netns;
  return [
    routedScript([...gateways, ...WAYS.map(clientOf)]),
    // The plain gateway is the first: its card is to0.
    `ip -n router route add default via ${gatewayOf("plain").ipv4} dev to0 table 50`,
    `ip -n router -6 route add default via ${gatewayOf("plain").ipv6} dev to0 table 50`,
    `ip -n router rule add from ${ipv4} to ${TARGET.ipv4} lookup 50`,
    `ip -n router -6 rule add from ${ipv6} to ${TARGET.ipv6} lookup 50`,
    ...forwarding(gatewayOf("plain")),
    ...forwarding(gatewayOf("hand")),
    `ip -n ${hand} fou add port ${FOU_PORT} ipproto 4`,
    `ip -n ${hand} fou add port ${FOU_PORT} ipproto 41 -6`,
    `ip -n ${hand} rule add iif eth0 lookup 118`,
    `ip -n ${hand} -6 rule add iif eth0 lookup 118`,
    `nohup ip netns exec target python3 ${folder}/round_trips.py serve >/dev/null 2>&1 </dev/null &`,
  ].join("\n");
}

/** What is not from the gateway itself gets its address. */
function forwarding({ netns, ipv4, ipv6 }: ReturnType<typeof gatewayOf>): string[] {
  const masquerade = (source: string) => `add rule inet hand nat oifname eth0 ${source} masquerade`;
  return [
    `ip netns exec ${netns} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0`,
    `ip netns exec ${netns} nft '
      add table inet hand
      add chain inet hand nat { type nat hook postrouting priority srcnat; }
      ${masquerade(`ip saddr != ${ipv4}`)}
      ${masquerade(`ip6 saddr != ${ipv6}`)}'`,
  ];
}
