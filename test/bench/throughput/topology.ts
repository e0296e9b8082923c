import { FOU_PORT } from "../egress.ts";
import { clientOf, gatewayOf, type Path, TARGET } from "./paths.ts";

/** A network namespace with its addresses. */
interface End {
  readonly netns: string;
  readonly ipv4: string;
  readonly ipv6: string;
}

/** A script that makes the namespaces of paths, their addresses and routes, and the path that is made by hand, if it is one. */
export function topologyScript(paths: readonly Path[]): string {
  const ends = paths.flatMap((path) => [clientOf(path), gatewayOf(path)]);
  return [
    routedScript(ends),
    ...(paths.includes("hand") ? [...handMadeGateway(), ...handMadeClient()] : []),
  ].join("\n");
}

/** A script that makes network namespaces around one router, and the target, which serves iperf3. */
export function routedScript(ends: readonly End[]): string {
  return [
    "set -e",
    "ip netns add router",
    ...[...ends, { netns: "target", ...TARGET }].flatMap(attach),
    "ip netns exec router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
    // -D leaves it behind when the script ends.
    "ip netns exec target env TMPDIR=/run iperf3 --server --daemon",
  ].join("\n");
}

/** A namespace with one card that leads to the router, and the router's card for it. */
function attach({ netns, ipv4, ipv6 }: End, index: number): string[] {
  const card = `to${index}`;
  const [router4, router6] = [ipv4.replace(/2$/, "1"), ipv6.replace(/2$/, "1")];
  return [
    `ip netns add ${netns}`,
    `ip link add eth0 netns ${netns} type veth peer name ${card} netns router`,
    `ip -n router address add ${router4}/24 dev ${card}`,
    `ip -n router address add ${router6}/64 dev ${card} nodad`,
    `ip -n router link set ${card} up`,
    `ip -n ${netns} link set lo up`,
    `ip -n ${netns} address add ${ipv4}/24 dev eth0`,
    `ip -n ${netns} address add ${ipv6}/64 dev eth0 nodad`,
    `ip -n ${netns} link set eth0 up`,
    `ip -n ${netns} route add default via ${router4}`,
    `ip -n ${netns} route add default via ${router6}`,
  ];
}

function handMadeGateway(): string[] {
  const { netns } = gatewayOf("hand");
  return [
    ...links(netns, gatewayOf("hand"), clientOf("hand")),
    `ip netns exec ${netns} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0`,
    `ip -n ${netns} rule add iif eth0 lookup 118`,
    `ip -n ${netns} -6 rule add iif eth0 lookup 118`,
    `ip -n ${netns} route add ${clientOf("hand").ipv4} dev peer4 table 118`,
    `ip -n ${netns} route add ${clientOf("hand").ipv6} dev peer6 table 118`,
    `ip netns exec ${netns} nft 'add table inet hand; add chain inet hand nat { type nat hook postrouting priority srcnat; }; add rule inet hand nat oifname eth0 meta l4proto tcp masquerade'`,
  ];
}

function handMadeClient(): string[] {
  const { netns, ipv4, ipv6 } = clientOf("hand");
  return [
    ...links(netns, clientOf("hand"), gatewayOf("hand")),
    `ip -n ${netns} route add ${TARGET.ipv4} dev peer4 src ${ipv4}`,
    `ip -n ${netns} route add ${TARGET.ipv6} dev peer6 src ${ipv6}`,
  ];
}

/** With the MTU that the kernel leaves to whoever makes such links: that of the card less the headers. */
function links(
  netns: string,
  local: { ipv4: string; ipv6: string },
  remote: { ipv4: string; ipv6: string },
): string[] {
  const encap = `encap fou encap-sport ${FOU_PORT} encap-dport ${FOU_PORT}`;
  return [
    `ip -n ${netns} fou add port ${FOU_PORT} ipproto 4`,
    `ip -n ${netns} fou add port ${FOU_PORT} ipproto 41 -6`,
    `ip -n ${netns} link add peer4 mtu 1472 type ipip local ${local.ipv4} remote ${remote.ipv4} ttl 225 ${encap}`,
    `ip -n ${netns} link add peer6 mtu 1452 type ip6tnl mode ip6ip6 local ${local.ipv6} remote ${remote.ipv6} encaplimit none ttl 225 ${encap}`,
    `ip -n ${netns} link set peer4 up`,
    `ip -n ${netns} link set peer6 up`,
  ];
}
