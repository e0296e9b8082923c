import { creationScript, tableDifferences, tableScript } from "../backends/nft/diff.ts";
import type { NftTableState } from "../backends/nft/state.ts";
import { type Difference, notDone } from "../difference.ts";
import { ipBatch, routingLines } from "../iproute/batch.ts";
import { linkChanges, linkRemovals } from "../iproute/links.ts";
import type { Step } from "../kernel/step.ts";
import { CLIENT_TABLE } from "./guard.ts";
import { CLIENT_TABLES, type ClientPlan } from "./plan.ts";
import type { ClientState } from "./state.ts";
import { sysctlChanges } from "./sysctls.ts";

export interface ClientChanges {
  /** Empty when the kernel is as planned. */
  readonly differences: readonly Difference[];
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
    ...routingLines("ipv4", plan, state, CLIENT_TABLES, links.replaced),
  ];
  const lines6 = [...plan.forget, ...routingLines("ipv6", plan, state, CLIENT_TABLES, links.replaced)];
  const leftovers = linkRemovals(plan, state);
  return {
    differences: [
      ...guard,
      ...notDone("ip", lines4),
      ...Object.entries(sysctls).map(([path, value]) => ({
        object: "sysctl",
        text: `sysctl ${path} is not ${value}`,
      })),
      ...notDone("ip -6", lines6),
      ...notDone("ip", leftovers),
    ],
    steps: [
      ...(guard.length > 0 ? [nftScript(tableScript(plan.guard, state.guard, { listing }))] : []),
      ...ipBatch([], lines4),
      ...(Object.keys(sysctls).length > 0 ? [{ sysctls }] : []),
      ...ipBatch(["-6"], lines6),
      ...ipBatch([], leftovers),
    ],
  };
}

/**
 * What makes a client of a namespace that nobody has made one. The guard is the first that is made and the last that is
 * taken away, so it need not be known what else is there: the first step fails where there is a guard.
 */
export function clientCreation(plan: ClientPlan, network: Omit<ClientState, "guard">): readonly Step[] {
  const [, ...others] = clientChanges(plan, { ...network, guard: undefined }).steps;
  return [nftScript(creationScript(plan.guard)), ...others];
}

function nftScript(input: string): Step {
  return { file: "nft", args: ["-f", "-"], input };
}

/** What takes all that is founat's out of the kernel, guard last. */
export function clientRemoval(state: ClientState): Step[] {
  const nothing = { routes: [], bypassRules: [], rules: [], fouPorts: [], links: [] };
  return [
    ...ipBatch(["-6"], routingLines("ipv6", nothing, state, CLIENT_TABLES, new Set())),
    ...ipBatch(
      [],
      [...routingLines("ipv4", nothing, state, CLIENT_TABLES, new Set()), ...linkRemovals(nothing, state)],
    ),
    ...(state.guard === undefined ? [] : [nftScript(`delete table inet ${CLIENT_TABLE}\n`)]),
  ];
}
