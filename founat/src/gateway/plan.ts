import type { Range } from "../cidr.ts";
import { carriedRanges, decide } from "../coverage.ts";
import type { Addresses, Family } from "../family.ts";
import { FAMILIES } from "../family.ts";
import { type FouPort, linkName, type TunnelLink, tunnelLink } from "../iproute/links.ts";
import type { Route } from "../iproute/routes.ts";
import type { Rule } from "../iproute/rules.ts";
import { LOCAL_TABLE } from "../iproute/state.ts";
import type { NftTable } from "../nft/table.ts";
import { PROBE_PREFIXES } from "../probe-addresses.ts";
import type { GatewayConfig } from "./config.ts";
import { gatewayTable } from "./table.ts";

/** Routes to clients. */
export const CLIENTS_TABLE = 118;

/** The tables in which a gateway has routes. */
export const GATEWAY_TABLES: readonly number[] = [CLIENTS_TABLE, LOCAL_TABLE];

/** What is discovered in the gateway's network namespace. */
export interface GatewayFacts {
  readonly uplink: { readonly name: string; readonly mtu: number; readonly addresses: Addresses };
  /** Whether the kernel has flowtables. */
  readonly flowtables: boolean;
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
export function planGateway(config: GatewayConfig, { uplink, flowtables }: GatewayFacts): GatewayPlan {
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
    bypassRules: [],
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
    // Of what this host sends itself only answers to probes may meet that route: outer packets must not.
    // The flowtable asks for the way of answers by link, as if this host sent them: without 2002 those of IPv6 would take
    // the default route, and leave bare.
    rules: links.flatMap((link) => [
      rule(link, 2000, `iif ${uplink.name}`),
      rule(link, 2001, `from ${PROBE_PREFIXES[link.family]}`),
      rule(link, 2002, `oif ${linkName(link)}`),
    ]),
  };
}

function rule({ family }: TunnelLink, preference: number, selector: string): Rule {
  return { family, preference, selector, action: `lookup ${CLIENTS_TABLE}` };
}

// The same decision as a client's: wide destinations do not include private ranges.
function reachable(family: Family, { destinations, excluded }: GatewayConfig, self: Addresses): Range[] {
  const own = Object.values(self).filter((address) => address !== undefined);
  return carriedRanges(
    decide(family, [{ destinations, excluded: [...excluded, ...own] }], { clusterRanges: [] }),
  );
}
