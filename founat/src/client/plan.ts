import { type Addresses, FAMILIES, type Family } from "@egress-nat/addresses";
import { FounatError } from "../error.ts";
import type { Routing } from "../iproute/batch.ts";
import { linkName, type TunnelLink, type Tunnels, tunnelLink } from "../iproute/links.ts";
import { carriersOf, decide } from "../routing/coverage.ts";
import { probeAddress } from "../routing/probe-addresses.ts";
import { choicesAmong, inOrder, interimChoices, strayLinks } from "./choices.ts";
import type { ClientConfig, ClientEgress } from "./config.ts";
import { markOfReplies, type Pin } from "./mark.ts";
import { type PinNumbers, pinKey, pinRouting, pinsOf } from "./pins.ts";
import { type ClientPolicy, type FamilyCoverage, familyPolicy, type Ways } from "./policy.ts";
import { clientRouting, type FormerWay, type Probe } from "./routes.ts";
import { clientSysctls, type Sysctl } from "./sysctls.ts";
import { choicesOf, tunnelsOf, withLinked, withoutAddresses } from "./tunnels.ts";

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
  /** Of links that there are, or have been. */
  readonly pins: PinNumbers;
  /** By which flows may go until the plan's take over. */
  readonly ways: readonly FormerWay[];
}

/** What decides about ways to other gateways. */
export type WayFacts = Pick<ClientFacts, "uplink" | "pins">;

/** All that a client's network namespace holds for its Egresses. */
export interface ClientPlan extends Routing, Tunnels {
  readonly policy: ClientPolicy;
  /** What leads marks to links: without effect while no packet has any. */
  readonly pinning: Routing;
  /** Lines for `ip -6 -batch` that take away what is not trusted, before any other of IPv6. */
  readonly forget: readonly string[];
  /** Those for which there are routes. */
  readonly probes: readonly Probe[];
  readonly sysctls: readonly Sysctl[];
  /**
   * Whether another look is to follow at once: the guard is another one when the routes lead where this plan has them lead, or
   * gateways wait for the marks of those that this plan takes away, or until flows of another Egress are ended.
   */
  readonly isInterim: boolean;
  /** Who carries anything, of families that have routes. It does not depend on gateways. */
  readonly routed: readonly RoutedFamily[];
}

type RoutedFamily = Pick<FamilyCoverage, "family" | "carriers" | "local">;

/** Where flows go, and the links that take them there. */
interface PlannedWays extends Omit<Ways, "oneWay"> {
  readonly links: readonly TunnelLink[];
}

/**
 * Decides what a client's network namespace should hold.
 *
 * @throws FounatError `invalid-config` when the configuration contradicts itself, or asks for more than there is
 */
export function planClient(given: ClientConfig, facts: ClientFacts): ClientPlan {
  const config = { ...given, egresses: given.egresses.map((egress) => withLinked(egress, facts.pins)) };
  const [port, replies] = [commonPort(config.egresses), markOfReplies(config.markMask)];
  const coverage = { ipv4: coverageOf("ipv4", config, facts), ipv6: coverageOf("ipv6", config, facts) };
  // Both are guarded, come what may.
  const routed = FAMILIES.map((family) => coverage[family]).filter(
    ({ family, carriers }) => carriers.size > 0 && facts.families.includes(family),
  );
  const probes = probesOf(config.egresses, routed);
  const { links, pins, choices, late } = waysOf(routed, { port, replies }, facts);
  const routing = routed.map((ofFamily) => clientRouting(ofFamily, { probes, replies }));
  const routes = routing.flatMap((ofFamily) => ofFamily.routes);
  const pinned = new Set(pins.map(({ link }) => link));
  const strays = strayLinks(facts.ways, routes, routed);
  const isWaiting = (link: string) => !pinned.has(link) || strays.has(pinKey(link));
  const waiting = new Set(links.flatMap((link) => (isWaiting(linkName(link)) ? (link.remote ?? []) : [])));
  if (waiting.size > 0) {
    const egresses = given.egresses.map((egress) => withoutAddresses(waiting, egress));
    return { ...planClient({ ...given, egresses }, facts), isInterim: true };
  }
  const oneWay = goOneWay(routed, pins, facts.ways);
  const unled = facts.ways.filter(({ family }) => late[family].length === 0);
  const interim = interimChoices(unled, routes, choices);
  const links4 = links.filter(({ family }) => family === "ipv4").map(linkName);
  return {
    policy: {
      ...{ uplink: config.uplink, port, replies, pins, late, oneWay },
      choices: inOrder([...choices, ...interim]),
      families: { ipv4: familyPolicy("ipv4", coverage), ipv6: familyPolicy("ipv6", coverage) },
    },
    fouPorts: routed.flatMap(({ family, local }) => (local === undefined ? [] : [{ family, port }])),
    links,
    forget: facts.forget,
    pinning: pinRouting(pins, facts.uplink.addresses),
    bypassRules: routing.flatMap(({ bypassRules }) => bypassRules),
    routes,
    rules: routing.flatMap(({ rules }) => rules),
    probes,
    sysctls: clientSysctls(config.uplink, links4, facts.needsAdvertisements),
    isInterim: interim.length > 0 || (!oneWay && goOneWay(routed, pins, [])),
    // Whoever keeps a plan is not to keep all decisions.
    routed: routed.map(({ family, carriers, local }) => ({ family, carriers, local })),
  };
}

/**
 * Where flows go with other gateways than those of a plan, all else of which stays as it is: who carries what takes longer to
 * decide than all of this.
 */
export function planWays({ routed, policy }: ClientPlan, config: ClientConfig, facts: WayFacts): PlannedWays {
  const egresses = new Map(config.egresses.map((egress) => [egress.name, withLinked(egress, facts.pins)]));
  const current = routed.map((family) => ({
    ...family,
    carriers: new Set([...family.carriers].map((carrier) => egresses.get(carrier.name) ?? carrier)),
  }));
  return waysOf(current, policy, facts);
}

function waysOf(
  routed: readonly RoutedFamily[],
  { port, replies }: Pick<ClientPolicy, "port" | "replies">,
  facts: WayFacts,
): PlannedWays {
  const links = routed.flatMap(({ family, carriers, local }) =>
    local === undefined
      ? []
      : tunnelsOf(family, carriers).map((key) => tunnelLink(key, port, facts.uplink, local)),
  );
  // What is made of them is the same in whatever order gateways are named.
  const pins = pinsOf(links, facts.pins, replies.mask).toSorted((one, other) => one.number - other.number);
  const among = routed.map(({ family, carriers }) => ({ family, ...choicesAmong(family, carriers, pins) }));
  const lateOf = (family: Family) => among.find((each) => each.family === family)?.late ?? [];
  return {
    ...{ links, pins },
    choices: among.flatMap(({ choices }) => choices),
    late: { ipv4: lateOf("ipv4"), ipv6: lateOf("ipv6") },
  };
}

/**
 * Whether flows of each family go to one gateway only, or there is none that they could have.
 *
 * @param former ways that there are until the plan's take over
 */
function goOneWay(
  routed: readonly RoutedFamily[],
  pins: readonly Pin[],
  former: readonly FormerWay[],
): boolean {
  return routed.every(({ family, carriers }) => {
    const [pin, ...others] = pins.filter((each) => each.family === family);
    if (pin === undefined) return true;
    const allLead = [...carriers].every((egress) => choicesOf(family, egress).length > 0);
    const there = former.filter((each) => each.family === family);
    return others.length === 0 && allLead && there.every(({ link }) => pinKey(link) === pinKey(pin.link));
  });
}

function coverageOf(
  family: Family,
  { egresses, clusterRanges }: ClientConfig,
  { mainRoutes, uplink }: ClientFacts,
): FamilyCoverage {
  const decisions = decide(family, egresses, { clusterRanges, mainRoutes });
  return { family, decisions, carriers: carriersOf(decisions), local: uplink.addresses[family] };
}

function probesOf(egresses: readonly ClientEgress[], families: readonly FamilyCoverage[]): Probe[] {
  return egresses.flatMap((egress, index) =>
    families.flatMap(({ family, carriers, local }): Probe[] => {
      const address = probeAddress(family, index);
      if (choicesOf(family, egress).length === 0 || address === undefined || local === undefined) return [];
      return carriers.has(egress) ? [{ egress, family, address, source: local }] : [];
    }),
  );
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
