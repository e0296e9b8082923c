import type { Family } from "@egress-nat/addresses";
import type { Changes } from "../difference.ts";
import { batch, type Command } from "../kernel/step.ts";
import { deleteRouteCommand, missingRoutes, type Route, replaceRouteCommand, staleRoutes } from "./routes.ts";
import { addRuleCommand, deleteRuleCommand, missingRules, type Rule, staleRules } from "./rules.ts";
import type { NetworkState } from "./state.ts";

/** The policy routing that is wanted. */
export interface Routing {
  /** Rules that keep packets away from `routes`. */
  readonly bypassRules: readonly Rule[];
  /** In the order in which they may become effective. */
  readonly routes: readonly Route[];
  /** Rules that send packets to `routes`. */
  readonly rules: readonly Rule[];
}

// Of what is taken away, what sends packets into tunnels goes first.
const REMOVAL_ORDER = ["unicast", "unreachable", "throw", "local"];

/**
 * Lines for `ip -batch`, of one family.
 *
 * @param tables whose routes are to be the wanted ones
 * @param replacedLinks links whose routes the kernel has dropped by then
 */
type RoutingLines = (
  family: Family,
  wanted: Routing,
  state: NetworkState,
  tables: readonly number[],
  replacedLinks: ReadonlySet<string>,
) => string[];

/**
 * What makes the rules, and the routes, the wanted ones. New before old, and what keeps packets away from the tunnels
 * before what sends them there.
 */
export const routingLines: RoutingLines = (family, wanted, state, tables, replacedLinks) => [
  ...routingAdditions(family, wanted, state, replacedLinks),
  ...routingRemovals(family, wanted, state, tables, replacedLinks),
];

/** The first part of {@link routingLines}. */
export function routingAdditions(
  family: Family,
  wanted: Routing,
  state: NetworkState,
  replacedLinks: ReadonlySet<string>,
): string[] {
  const { bypassRules, routes, rules } = ofFamily(family, wanted);
  return [
    ...missingRules(bypassRules, state).map(addRuleCommand),
    ...missingRoutes(routes, state, replacedLinks).map(replaceRouteCommand),
    ...missingRules(rules, state).map(addRuleCommand),
  ];
}

/** The second part of {@link routingLines}. */
export const routingRemovals: RoutingLines = (family, wanted, state, tables, replacedLinks) => {
  const { bypassRules, routes, rules } = ofFamily(family, wanted);
  const isOfFamily = (item: { readonly family: Family }) => item.family === family;
  const oldRules = staleRules([...bypassRules, ...rules], state).filter(isOfFamily);
  const oldRoutes = staleRoutes(routes, state, tables, replacedLinks).filter(isOfFamily);
  return [
    ...oldRules.sort((a, b) => b.preference - a.preference).map(deleteRuleCommand),
    ...oldRoutes
      .sort((a, b) => REMOVAL_ORDER.indexOf(a.type) - REMOVAL_ORDER.indexOf(b.type))
      .map(deleteRouteCommand),
  ];
};

function ofFamily(family: Family, { bypassRules, routes, rules }: Routing): Routing {
  const isOfFamily = (item: { readonly family: Family }) => item.family === family;
  return {
    bypassRules: bypassRules.filter(isOfFamily),
    routes: routes.filter(isOfFamily),
    rules: rules.filter(isOfFamily),
  };
}

/**
 * One `ip` process for all lines; none where there are none.
 *
 * @param options `-6` for rules and routes of IPv6. Not for `ip fou`: it would take `-6` as the family of all ports.
 */
export function ipBatch(options: readonly string[], lines: readonly string[]): Command[] {
  return batch("ip", [...options, "-batch", "-"], lines);
}

/** As {@link ipBatch}; each line is something that is still to be done. */
export function ipChanges(options: readonly string[], lines: readonly string[]): Changes {
  const command = ["ip", ...options].join(" ");
  const differences = lines.map((line) => ({
    object: line.split(" ", 1)[0] ?? "",
    text: `not done: ${command} ${line}`,
  }));
  return { differences, steps: ipBatch(options, lines) };
}
