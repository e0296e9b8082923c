/** Which gateways flows begin with, by the link that the routes lead them to. */

import { isDeepStrictEqual } from "node:util";
import type { Family } from "@egress-nat/addresses";
import { linkName } from "../iproute/links.ts";
import type { Route } from "../iproute/routes.ts";
import type { ClientEgress } from "./config.ts";
import type { Pin } from "./mark.ts";
import { pinKey } from "./pins.ts";
import type { Choice, FamilyCoverage } from "./policy.ts";
import type { FormerWay } from "./routes.ts";
import { choicesOf, linksOf, tunnelOf } from "./tunnels.ts";

/** @param egresses who carries anything of a family */
export function choicesAmong(
  family: Family,
  egresses: Iterable<ClientEgress>,
  pins: readonly Pin[],
): { readonly choices: readonly Choice[]; readonly late: readonly Pin[] } {
  const each = Array.from(egresses, (egress) => {
    const names = choicesOf(family, egress).map(linkName);
    const chosen = pins.filter(({ link }) => names.includes(link));
    const links = chosen.length === 0 ? [] : linksOf(family, egress).map(linkName);
    return { chosen, others: links.filter((link) => !names.includes(link)) };
  });
  // Of two Egresses that name one gateway it belongs to that whose flows begin with it, else to the first.
  const claims = [
    ...each.flatMap(({ chosen }) => chosen.map(({ link }) => ({ link, pins: chosen }))),
    ...each.flatMap(({ chosen, others }) => others.map((link) => ({ link, pins: chosen }))),
  ];
  const choices = new Map<string, Choice>();
  for (const claim of claims) if (!choices.has(claim.link)) choices.set(claim.link, claim);
  const [first = [], ...others] = each.map(({ chosen }) => chosen);
  const isCommon = others.every((chosen) => isDeepStrictEqual(chosen, first));
  return { choices: inOrder([...choices.values()]), late: isCommon ? first : [] };
}

/**
 * Those that hold only until the plan's routes take over: what present routes lead to a link which is nobody's choice
 * begins with the gateways that the plan has for its destination.
 *
 * @param former ways that there are
 * @param routes the plan's
 * @param choices the plan's
 * @returns none of a link whose destinations have different gateways by then, because nobody can tell whose a flow is
 */
export function interimChoices(
  former: readonly FormerWay[],
  routes: readonly Route[],
  choices: readonly Choice[],
): Choice[] {
  const chosen = new Map(choices.map(({ link, pins }) => [link, pins]));
  const unclaimed = former.filter(({ link }) => !chosen.has(link));
  const interim = successors(unclaimed, routes).map(({ link, devices }) => {
    const [pins = [], ...others] = devices.map((device) => chosen.get(device ?? "") ?? []);
    return { link, pins: others.every((other) => isDeepStrictEqual(other, pins)) ? pins : [] };
  });
  return interim.filter(({ pins }) => pins.length > 0);
}

/**
 * Links that have flows of an Egress which does not name their gateway, because its address has moved to another Egress while
 * nobody looked: what present routes lead there will be of Egresses that do not name it, and what will be of those that name
 * it is led elsewhere.
 *
 * @param former ways that there are
 * @param routes the plan's
 * @param routed who carries anything of each family
 * @returns what {@link pinKey} makes of their names
 */
export function strayLinks(
  former: readonly FormerWay[],
  routes: readonly Route[],
  routed: readonly Pick<FamilyCoverage, "family" | "carriers">[],
): ReadonlySet<string> {
  // Most clients have one Egress, and are looked at again and again.
  if (routed.every(({ carriers }) => carriers.size < 2)) return new Set();
  /** By the link that the plan's routes of an Egress lead to: the links that it names, and those that it has routes to. */
  const ways = new Map<string, { readonly named: Set<string>; readonly had: Set<string> }>();
  for (const { family, carriers } of routed) {
    for (const carrier of carriers) {
      const device = linkName(tunnelOf(family, carrier));
      const way = ways.get(device) ?? { named: new Set<string>(), had: new Set<string>() };
      for (const link of linksOf(family, carrier)) way.named.add(pinKey(linkName(link)));
      ways.set(device, way);
    }
  }
  for (const { link, devices } of successors(former, routes))
    for (const device of devices) ways.get(device ?? "")?.had.add(pinKey(link));
  const all = [...ways.values()];
  const links = all.flatMap(({ had }) => [...had]);
  const isStray = (link: string) =>
    all.every(({ named, had }) => !(had.has(link) && named.has(link))) &&
    all.some(({ named, had }) => named.has(link) && had.size > 0);
  return new Set(links.filter(isStray));
}

/** To which links the plan leads what present routes lead to a link; undefined for what nobody carries any more. */
function successors(
  former: readonly FormerWay[],
  routes: readonly Route[],
): { readonly link: string; readonly devices: readonly (string | undefined)[] }[] {
  const routed = former.flatMap(({ link, route }) => (route ? [{ link, key: keyOf(route) }] : []));
  if (routed.length === 0) return [];
  const tunnels = routes.filter(({ device }) => device !== undefined);
  const planned = new Map(tunnels.map((route) => [keyOf(route), route.device]));
  return Array.from(
    Map.groupBy(routed, ({ link }) => link),
    ([link, ways]) => ({ link, devices: ways.map(({ key }) => planned.get(key)) }),
  );
}

function keyOf({ table, destination }: Pick<Route, "table" | "destination">): string {
  return `${table} ${destination}`;
}

export function inOrder(choices: readonly Choice[]): Choice[] {
  return choices.toSorted((one, other) => (one.link < other.link ? -1 : 1));
}
