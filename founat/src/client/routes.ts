import { ADDRESS_BITS, FAMILIES, type Family, formatCidr } from "@egress-nat/addresses";
import type { Routing } from "../iproute/batch.ts";
import { isLinkName, isPeerLinkName, linkName } from "../iproute/links.ts";
import { LAST_METRIC, type Route } from "../iproute/routes.ts";
import type { Rule } from "../iproute/rules.ts";
import { MAIN_TABLE, type NetworkState } from "../iproute/state.ts";
import { PRIVATE_RANGES, parseCidr, prefixesOf } from "../routing/cidr.ts";
import { normalizeCidrs, visitNested } from "../routing/nesting.ts";
import type { ClientEgress } from "./config.ts";
import { fwmark, type Mark } from "./mark.ts";
import { PIN_TABLES } from "./pins.ts";
import type { FamilyCoverage } from "./policy.ts";
import { gatewaysOf, tunnelOf } from "./tunnels.ts";

/** Of routes to the probe addresses of Egresses. */
const PROBE_TABLE = 116;
/** Of routes to destinations: narrow ones (private external networks), and wide ones (the Internet). */
const TUNNEL_TABLES = {
  narrow: {
    routes: 117,
    /** Asked when the table has no route to a destination of its own any more, because its link is down or gone. */
    deadEnds: 119,
  },
  wide: { routes: 118, deadEnds: 120 },
} as const;
type Width = keyof typeof TUNNEL_TABLES;

/** All whose routes are the plan's, and nobody else's. */
export const CLIENT_TABLES: readonly number[] = [
  PROBE_TABLE,
  ...PIN_TABLES,
  ...Object.values(TUNNEL_TABLES).flatMap(({ routes, deadEnds }) => [routes, deadEnds]),
];

/** A link by which flows may go. */
export interface FormerWay {
  readonly family: Family;
  /** Name of the link. */
  readonly link: string;
  /** What leads there; nothing does to links that are there for the flows that they have. */
  readonly route?: Pick<Route, "table" | "destination">;
}

/** Those that there are: links to gateways, and what routes to destinations lead to. */
export function waysThere({ links, routes }: NetworkState): FormerWay[] {
  const tables: readonly number[] = [TUNNEL_TABLES.narrow.routes, TUNNEL_TABLES.wide.routes];
  const toGateways = links.flatMap(({ name }) =>
    FAMILIES.filter((family) => isPeerLinkName(family, name)).map((family) => ({ family, link: name })),
  );
  const routed = routes.flatMap(({ family, table, destination, device = "" }) =>
    tables.includes(table) && isLinkName(device)
      ? [{ family, link: device, route: { table, destination } }]
      : [],
  );
  return [...toGateways, ...routed];
}

/** A packet that asks whether a gateway is at the other end of a tunnel. */
export interface Probe {
  readonly egress: ClientEgress;
  readonly family: Family;
  /** Where it goes. */
  readonly address: string;
  /** The client's own address. */
  readonly source: string;
}

type Way = Pick<Route, "family" | "table" | "destination">;

/** What the routing of a client serves besides destinations. */
interface Marked {
  readonly probes: readonly Probe[];
  /** On replies to inbound flows. */
  readonly replies: Mark;
}

/** The policy routing of one family. */
export function clientRouting(coverage: FamilyCoverage, { probes, replies }: Marked): Routing {
  const { family } = coverage;
  const probed = probes.filter((probe) => probe.family === family).flatMap(probeRoutes);
  const narrow = tableRoutes(coverage, "narrow");
  const wide = tableRoutes(coverage, "wide");
  return {
    bypassRules: bypassRules(coverage, replies, wide.length > 0),
    // Longer prefixes first: what is within one never goes where only the prefix around it leads.
    routes: [...probed, ...narrow, ...wide].toSorted((a, b) => lengthOf(b) - lengthOf(a)),
    rules: [
      ...(probed.length > 0 ? [rule(family, 1890, "", PROBE_TABLE)] : []),
      ...(narrow.length > 0 ? tableRules(family, 1900, "narrow") : []),
      ...(wide.length > 0 ? tableRules(family, 2100, "wide") : []),
    ],
  };
}

const LINK_LOCAL: Readonly<Record<Family, string>> = { ipv4: "169.254.0.0/16", ipv6: "fe80::/10" };

function bypassRules({ family, carriers }: FamilyCoverage, replies: Mark, wide: boolean): Rule[] {
  const egresses = [...carriers];
  const gateways = normalizeCidrs(egresses.flatMap((egress) => gatewaysOf(family, egress)));
  return [
    rule(family, 1800, `to ${LINK_LOCAL[family]}`, MAIN_TABLE),
    // An outer packet must never meet the tunnel that made it.
    ...gateways.map((gateway) => rule(family, 1850, `to ${gateway}`, MAIN_TABLE)),
    ...(egresses.some(({ originatingOnly }) => originatingOnly)
      ? [rule(family, 1880, fwmark(replies), MAIN_TABLE)]
      : []),
    ...(wide
      ? [
          ...prefixesOf(family, PRIVATE_RANGES).map((range, index) =>
            rule(family, 2000 + index, `to ${formatCidr(range)}`, MAIN_TABLE),
          ),
          rule(family, 2050, "", `${MAIN_TABLE} suppress_prefixlength 0`),
        ]
      : []),
  ];
}

function rule(family: Family, preference: number, selector: string, table: number | string): Rule {
  return { family, preference, selector, action: `lookup ${table}` };
}

function tableRules(family: Family, preference: number, width: Width): Rule[] {
  const { routes, deadEnds } = TUNNEL_TABLES[width];
  return [rule(family, preference, "", routes), rule(family, preference + 1, "", deadEnds)];
}

// One route for each decision that differs from that of the enclosing prefix: longest prefix match does the rest.
function tableRoutes({ family, decisions, local }: FamilyCoverage, width: Width): Route[] {
  const { routes: table, deadEnds } = TUNNEL_TABLES[width];
  const throws: Route[] = [];
  const tunnels: Route[] = [];
  // Rules decide about the others before the wide table is asked.
  const asked = decisions.filter(({ kind }) => width === "narrow" || (kind !== "main" && kind !== "narrow"));
  visitNested<(typeof asked)[number], ClientEgress | undefined>(asked, (decision, around) => {
    const carrier = decision.kind === width ? decision.carrier : undefined;
    if (carrier === around) return carrier;
    const destination = formatCidr(decision.prefix);
    if (carrier === undefined) {
      for (const each of [table, deadEnds]) throws.push({ family, table: each, destination, type: "throw" });
    } else {
      // Within the destinations of another Egress its route would take over, and no other table would be asked.
      tunnels.push(deadEnd({ family, table: around === undefined ? deadEnds : table, destination }));
      if (local !== undefined) tunnels.push(tunnelRoute({ family, table, destination }, carrier, local));
    }
    return carrier;
  });
  return [...throws, ...tunnels];
}

// Whatever its destinations are, a probe of the Egress goes where their packets go.
function probeRoutes({ egress, family, address, source }: Probe): Route[] {
  const way = { family, table: PROBE_TABLE, destination: `${address}/${ADDRESS_BITS[family]}` };
  return [deadEnd(way), tunnelRoute(way, egress, source)];
}

function lengthOf({ destination }: Route): number {
  return parseCidr(destination).length;
}

// For when the tunnel's route is gone with its link: no other route may take over.
function deadEnd(way: Way): Route {
  return { ...way, type: "unreachable", metric: LAST_METRIC };
}

function tunnelRoute(way: Way, to: ClientEgress, local: string): Route {
  // Without the source the kernel may pick a second address, and the gateway drops it as forged.
  return { ...way, type: "unicast", device: linkName(tunnelOf(way.family, to)), source: local };
}
