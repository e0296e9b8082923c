import type { NftTable } from "../backends/nft/table.ts";
import { FounatError } from "../error.ts";
import { type Addresses, FAMILIES, type Family } from "../family.ts";
import {
  type FouPort,
  linkName,
  receivingLink,
  type TunnelLink,
  type TunnelLinkKey,
  tunnelLink,
} from "../iproute/links.ts";
import { LAST_METRIC, type Route } from "../iproute/routes.ts";
import type { Rule } from "../iproute/rules.ts";
import { MAIN_TABLE } from "../iproute/state.ts";
import {
  ADDRESS_BITS,
  containsPrefix,
  formatCidr,
  normalizeCidrs,
  PRIVATE_RANGES,
  prefixesOf,
} from "../routing/cidr.ts";
import { type Decision, decide } from "../routing/coverage.ts";
import { probeAddress } from "../routing/probe-addresses.ts";
import type { ClientConfig, ClientEgress } from "./config.ts";
import { guardTable } from "./guard.ts";
import { type Mark, markOfReplies } from "./mark.ts";

/** Of routes to the probe addresses of Egresses. */
const PROBE_TABLE = 116;
/** Of routes to narrow destinations (private external networks). */
const NARROW_TABLE = 117;
/** Of routes to wide destinations (the Internet). */
const WIDE_TABLE = 118;
/** Of what is asked when a table has no route to a destination of its own any more, because its link is down or gone. */
const DEAD_END_TABLES = { [NARROW_TABLE]: 119, [WIDE_TABLE]: 120 } as const;

/** All whose routes are the plan's, and nobody else's. */
export const CLIENT_TABLES: readonly number[] = [
  PROBE_TABLE,
  NARROW_TABLE,
  WIDE_TABLE,
  ...Object.values(DEAD_END_TABLES),
];

/** What is discovered in the client's network namespace. */
export interface ClientFacts {
  readonly uplink: { readonly name: string; readonly mtu: number; readonly addresses: Addresses };
  /** Destinations of the main table's routes (CIDRs), but for default routes. */
  readonly mainRoutes: readonly string[];
  /** Lines for `ip -6 -batch` that take away what routers have advertised. */
  readonly forget: readonly string[];
  /** Whether the uplink has no addresses but those that it learns from router advertisements. */
  readonly needsAdvertisements: boolean;
  /** For which the kernel has routes and rules. */
  readonly families: readonly Family[];
}

/** All that a client's network namespace holds for its Egresses. */
export interface ClientPlan {
  readonly guard: NftTable;
  readonly fouPorts: readonly FouPort[];
  readonly links: readonly TunnelLink[];
  /** Lines for `ip -6 -batch` that take away what is not trusted, before any other of IPv6. */
  readonly forget: readonly string[];
  /** Those that keep packets away from the tunnels. */
  readonly bypassRules: readonly Rule[];
  readonly routes: readonly Route[];
  /** Those that send packets to the tunnels. */
  readonly rules: readonly Rule[];
  /** Path below /proc/sys -> value. */
  readonly sysctls: Readonly<Record<string, string>>;
  /** Sysctls that older kernels lack. */
  readonly sysctlsIfPresent: Readonly<Record<string, string>>;
}

/**
 * Decides what a client's network namespace should hold.
 *
 * @throws FounatError `invalid-config` when the configuration contradicts itself
 */
export function planClient(config: ClientConfig, facts: ClientFacts): ClientPlan {
  const port = commonPort(config.egresses);
  const mark = markOfReplies(config.markMask);
  const families = FAMILIES.map((family) => planFamily(family, config, facts, mark)).filter(({ decisions }) =>
    decisions.some(({ carrier }) => carrier !== undefined),
  );
  // Both are guarded, come what may.
  const routed = families.filter(({ family }) => facts.families.includes(family));
  const links = routed.flatMap(({ links }) => links);
  return {
    guard: guardTable({ config, mark, port, families }),
    fouPorts: routed.filter(({ links }) => links.length > 0).map(({ family }) => ({ family, port })),
    links,
    forget: facts.forget,
    bypassRules: routed.flatMap(({ bypassRules }) => bypassRules),
    routes: routed.flatMap(({ routes }) => routes),
    rules: routed.flatMap(({ rules }) => rules),
    // Inbound flows arrive on the uplink from addresses that routes lead to the tunnel for, and routers' ICMP errors
    // in the tunnel from addresses that none does. Strict checks of the reverse path would drop them.
    sysctls: {
      ...Object.fromEntries(
        [config.uplink, ...links.filter(({ family }) => family === "ipv4").map(linkName)].map((name) => [
          `net/ipv4/conf/${name}/rp_filter`,
          "2",
        ]),
      ),
      // Either of them is enough for the kernel to believe a redirect.
      "net/ipv4/conf/all/accept_redirects": "0",
      [`net/ipv4/conf/${config.uplink}/accept_redirects`]: "0",
    },
    sysctlsIfPresent: {
      // After a retransmission timeout TCP changes a flow's hash, and with it the outer source port: in mid-flow the
      // node would see a new flow, and may give it to another gateway.
      "net/core/txrehash": "0",
      // What the pod's network is, the runtime has said; anybody on the link can say that he is a router.
      ...(facts.needsAdvertisements ? {} : { [`net/ipv6/conf/${config.uplink}/accept_ra`]: "0" }),
      [`net/ipv6/conf/${config.uplink}/accept_redirects`]: "0",
    },
  };
}

interface FamilyPlan {
  readonly family: Family;
  readonly decisions: readonly Decision<ClientEgress>[];
  readonly links: readonly TunnelLink[];
  readonly bypassRules: readonly Rule[];
  readonly routes: readonly Route[];
  readonly rules: readonly Rule[];
}

function planFamily(family: Family, config: ClientConfig, facts: ClientFacts, mark: Mark): FamilyPlan {
  const decisions = decide(family, config.egresses, {
    clusterRanges: config.clusterRanges,
    mainRoutes: facts.mainRoutes,
  });
  const carriers = new Set(decisions.flatMap(({ carrier }) => carrier ?? []));
  const local = facts.uplink.addresses[family];
  const links =
    local === undefined || carriers.size === 0
      ? []
      : linkKeys(family, [...carriers]).map((key) =>
          tunnelLink(key, commonPort(config.egresses), facts.uplink, local),
        );
  const probes = probeRoutes(family, config.egresses, carriers, local);
  const narrow = tableRoutes(family, NARROW_TABLE, decisions, local);
  const wide = tableRoutes(family, WIDE_TABLE, decisions, local);
  return {
    family,
    decisions,
    links,
    bypassRules: bypassRules(family, [...carriers], mark, wide.length > 0),
    routes: [...probes, ...narrow, ...wide],
    rules: [
      ...(probes.length > 0 ? [rule(family, 1890, "", PROBE_TABLE)] : []),
      ...(narrow.length > 0 ? tableRules(family, 1900, NARROW_TABLE) : []),
      ...(wide.length > 0 ? tableRules(family, 2100, WIDE_TABLE) : []),
    ],
  };
}

/**
 * A link for each gateway address, and one for what gateways send from other addresses than that: from their own, where
 * the node has forgotten that it had translated the client's packets.
 */
export function linkKeys(family: Family, egresses: readonly ClientEgress[]): TunnelLinkKey[] {
  const keys = [receivingLink(family), ...egresses.map((egress) => linkKey(family, egress))];
  return [...new Map(keys.map((key) => [linkName(key), key])).values()];
}

/** The link that packets of the Egress leave by. */
function linkKey(family: Family, { gateway, sourcePortAuto }: ClientEgress): TunnelLinkKey {
  const remote = gateway[family];
  return remote === undefined ? receivingLink(family) : { family, sourcePortAuto, remote };
}

const LINK_LOCAL: Readonly<Record<Family, string>> = { ipv4: "169.254.0.0/16", ipv6: "fe80::/10" };

function bypassRules(family: Family, egresses: readonly ClientEgress[], mark: Mark, wide: boolean): Rule[] {
  const gateways = normalizeCidrs(egresses.flatMap(({ gateway }) => gateway[family] ?? []));
  return [
    rule(family, 1800, `to ${LINK_LOCAL[family]}`, MAIN_TABLE),
    // An outer packet must never meet the tunnel that made it.
    ...gateways.map((gateway) => rule(family, 1850, `to ${gateway}`, MAIN_TABLE)),
    ...(egresses.some(({ originatingOnly }) => originatingOnly)
      ? [rule(family, 1880, `fwmark ${hex(mark.value)}/${hex(mark.mask)}`, MAIN_TABLE)]
      : []),
    ...(wide
      ? [
          ...prefixesOf(family, PRIVATE_RANGES).map((range, index) =>
            rule(family, 2000 + index, `to ${formatCidr(range)}`, MAIN_TABLE),
          ),
          {
            family,
            preference: 2050,
            selector: "",
            action: `lookup ${MAIN_TABLE} suppress_prefixlength 0`,
          },
        ]
      : []),
  ];
}

function rule(family: Family, preference: number, selector: string, table: number): Rule {
  return { family, preference, selector, action: `lookup ${table}` };
}

function tableRules(family: Family, preference: number, table: TunnelTable): Rule[] {
  return [rule(family, preference, "", table), rule(family, preference + 1, "", DEAD_END_TABLES[table])];
}

type TunnelTable = keyof typeof DEAD_END_TABLES;

// One route for each decision that differs from that of the enclosing prefix: longest prefix match does the rest.
function tableRoutes(
  family: Family,
  table: TunnelTable,
  decisions: readonly Decision<ClientEgress>[],
  local: string | undefined,
): Route[] {
  const deadEnds = DEAD_END_TABLES[table];
  const throws: Route[] = [];
  const tunnels: Route[] = [];
  const open: { decision: Decision<ClientEgress>; carrier: ClientEgress | undefined }[] = [];
  for (const decision of decisions) {
    // Rules decide about these before the wide table is asked.
    if (table === WIDE_TABLE && decision.decidedBefore && !decision.blocked) continue;
    while (open.length > 0 && !encloses(open.at(-1)?.decision, decision)) open.pop();
    const carrier = decision.narrow === (table === NARROW_TABLE) ? decision.carrier : undefined;
    const around = open.at(-1)?.carrier;
    open.push({ decision, carrier });
    if (carrier === around) continue;
    const destination = formatCidr(decision.prefix);
    if (carrier === undefined) {
      throws.push(
        ...[table, deadEnds].map((each): Route => ({ family, table: each, destination, type: "throw" })),
      );
      continue;
    }
    // Within the destinations of another Egress its route would take over, and no other table would be asked.
    tunnels.push(deadEnd(family, around === undefined ? deadEnds : table, destination));
    if (local !== undefined) tunnels.push(tunnelRoute(family, table, destination, carrier, local));
  }
  return [...throws, ...tunnels];
}

// Whatever its destinations are, a probe of the Egress goes where their packets go.
function probeRoutes(
  family: Family,
  egresses: readonly ClientEgress[],
  carriers: ReadonlySet<ClientEgress>,
  local: string | undefined,
): Route[] {
  return egresses.flatMap((egress, index) => {
    const address = probeAddress(family, index);
    if (local === undefined || address === undefined) return [];
    if (!carriers.has(egress) || egress.gateway[family] === undefined) return [];
    const destination = `${address}/${ADDRESS_BITS[family]}`;
    return [
      deadEnd(family, PROBE_TABLE, destination),
      tunnelRoute(family, PROBE_TABLE, destination, egress, local),
    ];
  });
}

// For when the tunnel's route is gone with its link: no other route may take over.
function deadEnd(family: Family, table: number, destination: string): Route {
  return { family, table, destination, type: "unreachable", metric: LAST_METRIC };
}

function tunnelRoute(
  family: Family,
  table: number,
  destination: string,
  carrier: ClientEgress,
  local: string,
): Route {
  return {
    family,
    table,
    destination,
    type: "unicast",
    // Without a gateway there is a route all the same: replies to inbound flows are looked up before they are sent
    // the other way. The guard refuses everything else.
    device: linkName(linkKey(family, carrier)),
    // Else the kernel may pick a second address, and the gateway drops it as forged.
    source: local,
  };
}

function encloses(outer: Decision<ClientEgress> | undefined, inner: Decision<ClientEgress>): boolean {
  return outer !== undefined && containsPrefix(outer.prefix, inner.prefix);
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function commonPort(egresses: readonly ClientEgress[]): number {
  const [first, ...rest] = egresses;
  if (first === undefined) {
    throw new FounatError("invalid-config", "a client needs at least one Egress; to take it out, remove it");
  }
  const other = rest.find(({ port }) => port !== first.port);
  if (other !== undefined) {
    throw new FounatError(
      "invalid-config",
      `Egress ${first.name} uses port ${first.port} and ${other.name} port ${other.port}; a client has one port`,
    );
  }
  return first.port;
}
