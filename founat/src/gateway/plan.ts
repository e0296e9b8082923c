import { type Addresses, FAMILIES, formatCidr } from "@egress-nat/addresses";
import { hex } from "../backends/spelling.ts";
import type { Routing } from "../iproute/batch.ts";
import { linkName, type TunnelLink, type Tunnels, tunnelLink } from "../iproute/links.ts";
import { FOUNAT_PROTOCOL, type Route } from "../iproute/routes.ts";
import type { Rule } from "../iproute/rules.ts";
import { LOCAL_TABLE, MAIN_TABLE, type RuleState } from "../iproute/state.ts";
import { parseCidr } from "../routing/cidr.ts";
import { PROBE_PREFIXES } from "../routing/probe-addresses.ts";
import type { GatewayConfig } from "./config.ts";
import { type GatewayPolicy, gatewayPolicy, MARKS } from "./policy.ts";

/** Of routes to clients. */
const CLIENTS_TABLE = 118;

/** The tables in which a gateway has routes. */
export const GATEWAY_TABLES: readonly number[] = [CLIENTS_TABLE, LOCAL_TABLE];

/** What is discovered in the gateway's network namespace. */
export interface GatewayFacts {
  readonly uplink: { readonly name: string; readonly mtu: number; readonly addresses: Addresses };
  /**
   * Whether the kernel, where it asks for the way back of an IPv4 packet, has to ask with the packet's mark
   * (src_valid_mark). Not where an older program has prepared the namespace, and no way asks for a mark yet.
   */
  readonly marksWayBack: boolean;
}

/** All that a gateway's network namespace holds, but for its clients. */
export interface GatewayPlan extends Routing, Tunnels {
  readonly policy: GatewayPolicy;
}

/** Decides what a gateway's network namespace should hold. */
export function planGateway(config: GatewayConfig, { uplink, marksWayBack }: GatewayFacts): GatewayPlan {
  const { port, sourcePortAuto } = config;
  const links = FAMILIES.flatMap((family) => {
    const own = uplink.addresses[family];
    return own === undefined ? [] : [tunnelLink({ family, sourcePortAuto }, port, uplink, own)];
  });
  return {
    policy: gatewayPolicy(config, uplink, links),
    fouPorts: links.map(({ family }) => ({ family, port })),
    links,
    bypassRules: links.map(ownWay),
    routes: links.flatMap(routesOf),
    rules: links.flatMap((link) =>
      link.family === "ipv6" || marksWayBack ? ways(link, uplink.name) : openWays(link, uplink.name),
    ),
  };
}

/** The link sends each packet to the inner destination's own address: one route serves every client. */
function routesOf(link: TunnelLink): Route[] {
  const { family } = link;
  const everywhere = family === "ipv4" ? "0.0.0.0/0" : "::/0";
  return [
    { family, table: CLIENTS_TABLE, destination: everywhere, type: "unicast", device: linkName(link) },
    { family, table: LOCAL_TABLE, destination: PROBE_PREFIXES[family], type: "local", device: "lo" },
  ];
}

const MAIN = `lookup ${MAIN_TABLE}`;
const TO_CLIENTS = `lookup ${CLIENTS_TABLE}`;

const PASSED = `fwmark ${hex(MARKS.passed)}/0xffffffff`;

/** What this host sends as itself: above all outer packets, which would ask every other rule in vain. */
function ownWay(link: TunnelLink): Rule {
  return rule(link, 1990, `from ${formatCidr(parseCidr(link.local))} iif lo`, MAIN);
}

/**
 * The ways into the tunnel and out of it; below each of them whatever else comes or goes there ends, so that without the
 * packet filter, which sets the mark, there is none. Of what this host sends itself only answers to probes may meet the
 * routes to clients: outer packets must not. The flowtable asks for the way of answers by link, as if this host sent
 * them: without 2002 those of IPv6 would take the default route, and leave bare.
 */
function ways(link: TunnelLink, uplink: string): Rule[] {
  const tunnel = linkName(link);
  const probe = PROBE_PREFIXES[link.family];
  return [
    rule(link, 2000, `${PASSED} iif ${uplink}`, TO_CLIENTS),
    rule(link, 2001, `from ${probe}`, TO_CLIENTS),
    rule(link, 2002, `oif ${tunnel}`, TO_CLIENTS),
    rule(link, 2003, `${PASSED} iif ${tunnel}`, MAIN),
    rule(link, 2010, `iif ${uplink}`, "blackhole"),
    rule(link, 2011, `from ${probe}`, "blackhole"),
    rule(link, 2012, `oif ${tunnel}`, "blackhole"),
    rule(link, 2013, `iif ${tunnel}`, "blackhole"),
  ];
}

/** The same where no way can ask for a mark: the packet filter alone decides. */
function openWays(link: TunnelLink, uplink: string): Rule[] {
  return [
    rule(link, 2000, `iif ${uplink}`, TO_CLIENTS),
    ...ways(link, uplink).filter(({ preference }) => preference === 2001 || preference === 2002),
  ];
}

/** Whether a rule is one of IPv4 that {@link openWays} lack. */
export function isMarkedWay({ family, protocol, selector, action }: RuleState): boolean {
  const isClosed = selector.includes(PASSED) || action === "blackhole";
  return family === "ipv4" && protocol === FOUNAT_PROTOCOL && isClosed;
}

function rule({ family }: TunnelLink, preference: number, selector: string, action: string): Rule {
  return { family, preference, selector, action };
}
