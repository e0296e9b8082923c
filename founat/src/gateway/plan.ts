import type { NftTable } from "../backends/nft/table.ts";
import type { Addresses, Family } from "../family.ts";
import { FAMILIES } from "../family.ts";
import { type FouPort, linkName, type TunnelLink, tunnelLink } from "../iproute/links.ts";
import { FOUNAT_PROTOCOL, type Route } from "../iproute/routes.ts";
import type { Rule } from "../iproute/rules.ts";
import { LOCAL_TABLE, MAIN_TABLE, type RuleState } from "../iproute/state.ts";
import { formatCidr, parseCidr, type Range } from "../routing/cidr.ts";
import { carriedRanges, decide } from "../routing/coverage.ts";
import { PROBE_PREFIXES } from "../routing/probe-addresses.ts";
import type { GatewayConfig } from "./config.ts";
import { PASSED_MARK } from "./marks.ts";
import { gatewayTable } from "./table.ts";

/** Routes to clients. */
const CLIENTS_TABLE = 118;

/** The tables in which a gateway has routes. */
export const GATEWAY_TABLES: readonly number[] = [CLIENTS_TABLE, LOCAL_TABLE];

/** What is discovered in the gateway's network namespace. */
export interface GatewayFacts {
  readonly uplink: { readonly name: string; readonly mtu: number; readonly addresses: Addresses };
  /** Whether the kernel has flowtables. */
  readonly flowtables: boolean;
  /**
   * Whether the kernel, where it asks for the way back of an IPv4 packet, has to ask with the packet's mark
   * (src_valid_mark). Not where an older program has prepared the namespace, and no way asks for a mark yet.
   */
  readonly marksWayBack: boolean;
}

/** All that a gateway's network namespace holds, but for its clients. */
export interface GatewayPlan {
  readonly table: NftTable;
  readonly fouPorts: readonly FouPort[];
  readonly links: readonly TunnelLink[];
  readonly bypassRules: readonly Rule[];
  readonly routes: readonly Route[];
  readonly rules: readonly Rule[];
}

/** Decides what a gateway's network namespace should hold. */
export function planGateway(config: GatewayConfig, facts: GatewayFacts): GatewayPlan {
  const { uplink, flowtables, marksWayBack } = facts;
  const families = FAMILIES.filter((family) => uplink.addresses[family] !== undefined);
  const links = families.map((family) =>
    tunnelLink(
      { family, sourcePortAuto: config.sourcePortAuto },
      config.port,
      uplink,
      uplink.addresses[family] ?? "",
    ),
  );
  return {
    table: gatewayTable({
      uplink: uplink.name,
      addresses: uplink.addresses,
      port: config.port,
      destinations: {
        ipv4: reachable("ipv4", config, uplink.addresses),
        ipv6: reachable("ipv6", config, uplink.addresses),
      },
      links: links.map((link) => ({ family: link.family, name: linkName(link) })),
      fastPath: flowtables,
    }),
    fouPorts: families.map((family) => ({ family, port: config.port })),
    links,
    // Above all for outer packets, which would ask every other rule in vain.
    bypassRules: links.map((link) => rule(link, 1990, `from ${hostPrefix(link.local)} iif lo`, MAIN)),
    // The link sends each packet to the inner destination's own address: one route serves every client.
    routes: links.flatMap((link): Route[] => [
      {
        family: link.family,
        table: CLIENTS_TABLE,
        destination: link.family === "ipv4" ? "0.0.0.0/0" : "::/0",
        type: "unicast",
        device: linkName(link),
      },
      {
        family: link.family,
        table: LOCAL_TABLE,
        destination: PROBE_PREFIXES[link.family],
        type: "local",
        device: "lo",
      },
    ]),
    rules: links.flatMap((link) =>
      link.family === "ipv6" || marksWayBack ? ways(link, uplink.name) : openWays(link, uplink.name),
    ),
  };
}

const MAIN = `lookup ${MAIN_TABLE}`;
const TO_CLIENTS = `lookup ${CLIENTS_TABLE}`;

const PASSED = `fwmark 0x${PASSED_MARK.toString(16)}/0xffffffff`;

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

function hostPrefix(address: string): string {
  return formatCidr(parseCidr(address));
}

// The same decision as a client's: wide destinations do not include private ranges.
function reachable(family: Family, { destinations, excluded }: GatewayConfig, self: Addresses): Range[] {
  const own = Object.values(self).filter((address) => address !== undefined);
  return carriedRanges(
    decide(family, [{ destinations, excluded: [...excluded, ...own] }], { clusterRanges: [] }),
  );
}
