import { ipBatch, routingLines } from "../iproute/batch.ts";
import { linkChanges, linkRemovals } from "../iproute/links.ts";
import { tableDifferences, tableScript } from "../nft/diff.ts";
import type { NftTableState } from "../nft/state.ts";
import type { Step } from "../step.ts";
import { CLIENT_TABLE } from "./guard.ts";
import { type ClientPlan, NARROW_TABLE, WIDE_TABLE } from "./plan.ts";
import type { ClientState } from "./state.ts";
import { sysctlChanges } from "./sysctls.ts";

const TABLES = [NARROW_TABLE, WIDE_TABLE];

export interface ClientChanges {
  /** In words, for people; empty when the kernel is as planned. */
  readonly differences: readonly string[];
  /** What makes the kernel as planned, guard first. */
  readonly steps: readonly Step[];
}

/**
 * What leads from the kernel's state to the plan. After each line of it packets to guarded destinations leave through
 * the tunnel or not at all, so that it may be interrupted anywhere: the next run reads what is there and does the rest.
 *
 * @param listing how nft lists the guard, where that is known
 */
export function clientChanges(plan: ClientPlan, state: ClientState, listing?: NftTableState): ClientChanges {
  const guard = tableDifferences(plan.guard, state.guard, { listing });
  const links = linkChanges(plan, state);
  const sysctls = sysctlChanges(plan, state.sysctls, links.replaced);
  const lines4 = [
    ...links.make,
    ...links.bringUp,
    ...routingLines("ipv4", plan, state, TABLES, links.replaced),
  ];
  const lines6 = routingLines("ipv6", plan, state, TABLES, links.replaced);
  const leftovers = linkRemovals(plan, state);
  return {
    differences: [
      ...guard,
      ...lines4.map((line) => `not done: ip ${line}`),
      ...Object.entries(sysctls).map(([path, value]) => `sysctl ${path} is not ${value}`),
      ...lines6.map((line) => `not done: ip -6 ${line}`),
      ...leftovers.map((line) => `not done: ip ${line}`),
    ],
    steps: [
      ...(guard.length > 0
        ? [{ file: "nft", args: ["-f", "-"], input: tableScript(plan.guard, state.guard, { listing }) }]
        : []),
      ...ipBatch([], lines4),
      ...(Object.keys(sysctls).length > 0 ? [{ sysctls }] : []),
      ...ipBatch(["-6"], lines6),
      ...ipBatch([], leftovers),
    ],
  };
}

/** What takes all that is founat's out of the kernel, guard last. */
export function clientRemoval(state: ClientState): Step[] {
  const nothing = { routes: [], bypassRules: [], rules: [], fouPorts: [], links: [] };
  return [
    ...ipBatch(["-6"], routingLines("ipv6", nothing, state, TABLES, new Set())),
    ...ipBatch(
      [],
      [...routingLines("ipv4", nothing, state, TABLES, new Set()), ...linkRemovals(nothing, state)],
    ),
    ...(state.guard === undefined
      ? []
      : [{ file: "nft", args: ["-f", "-"], input: `delete table inet ${CLIENT_TABLE}\n` }]),
  ];
}
