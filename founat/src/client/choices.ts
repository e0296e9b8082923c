/** Which gateways flows begin with, by the link that the routes lead them to. */

import { isDeepStrictEqual } from "node:util";
import type { Family } from "@egress-nat/addresses";
import { linkName } from "../iproute/links.ts";
import type { Route } from "../iproute/routes.ts";
import type { ClientEgress } from "./config.ts";
import type { Pin } from "./mark.ts";
import { pinKey } from "./pins.ts";
import type { Choice } from "./policy.ts";
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
 * Links that have flows of other Egresses than those that name their gateway: its address has moved while nobody looked.
 *
 * @param former ways that there are
 * @param routes the plan's
 * @param routed who carries anything of each family
 * @returns what {@link pinKey} makes of their names
 */
export function strayLinks(
  former: readonly FormerWay[],
  routes: readonly Route[],
  routed: readonly { readonly family: Family; readonly carriers: ReadonlySet<ClientEgress> }[],
): ReadonlySet<string> {
  const own = new Map<string, Set<string>>();
  for (const { family, carriers } of routed) {
    for (const carrier of carriers) {
      const device = linkName(tunnelOf(family, carrier));
      const links = linksOf(family, carrier).map((link) => pinKey(linkName(link)));
      own.set(device, new Set([...(own.get(device) ?? []), ...links]));
    }
  }
  const strays = successors(former, routes).filter(({ link, devices }) => {
    const carried = devices.filter((device) => device !== undefined);
    return carried.length > 0 && carried.every((device) => !own.get(device)?.has(pinKey(link)));
  });
  return new Set(strays.map(({ link }) => pinKey(link)));
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
