/** Which gateways flows begin with, by the link that the routes lead them to. */

import { isDeepStrictEqual } from "node:util";
import type { Family } from "@egress-nat/addresses";
import { linkName } from "../iproute/links.ts";
import type { Route } from "../iproute/routes.ts";
import type { ClientEgress } from "./config.ts";
import type { Pin } from "./mark.ts";
import type { Choice } from "./policy.ts";
import type { FormerWay } from "./routes.ts";
import { choicesOf, linksOf } from "./tunnels.ts";

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
  const unclaimed = former.flatMap(({ link, route }) =>
    route === undefined || chosen.has(link) ? [] : [{ link, key: keyOf(route) }],
  );
  if (unclaimed.length === 0) return [];
  const tunnels = routes.filter(({ device }) => device !== undefined);
  const planned = new Map(tunnels.map((route) => [keyOf(route), chosen.get(route.device ?? "")]));
  const interim = Array.from(
    Map.groupBy(unclaimed, ({ link }) => link),
    ([link, ways]) => {
      const [pins = [], ...others] = ways.map(({ key }) => planned.get(key) ?? []);
      return { link, pins: others.every((other) => isDeepStrictEqual(other, pins)) ? pins : [] };
    },
  );
  return interim.filter(({ pins }) => pins.length > 0);
}

function keyOf({ table, destination }: Pick<Route, "table" | "destination">): string {
  return `${table} ${destination}`;
}

export function inOrder(choices: readonly Choice[]): Choice[] {
  return choices.toSorted((one, other) => (one.link < other.link ? -1 : 1));
}
