import { ipBatch, routingLines } from "../iproute/batch.ts";
import { linkChanges, linkRemovals } from "../iproute/links.ts";
import type { Step } from "../kernel.ts";
import { hasLayout, tableDifferences, tableScript } from "../nft/diff.ts";
import { peerScript } from "./peers.ts";
import { GATEWAY_TABLES, type GatewayPlan } from "./plan.ts";
import { type GatewayState, peersOf } from "./state.ts";
import { CLIENT_SETS } from "./table.ts";

const COMPARISON = { keep: CLIENT_SETS };

export interface GatewayChanges {
  /** In words, for people; empty when the kernel is as planned. */
  readonly differences: readonly string[];
  /** What makes the kernel as planned; the packet filter comes first. */
  readonly steps: readonly Step[];
}

/** What leads from the kernel's state to the plan. Clients stay as they are. */
export function gatewayChanges(plan: GatewayPlan, state: GatewayState): GatewayChanges {
  const table = tableDifferences(plan.table, state.table, COMPARISON);
  const links = linkChanges(plan, state);
  const lines4 = [...links.commands, ...routingLines("ipv4", plan, state, GATEWAY_TABLES, links.replaced)];
  const lines6 = routingLines("ipv6", plan, state, GATEWAY_TABLES, links.replaced);
  const leftovers = linkRemovals(plan, state);
  return {
    differences: [
      ...table,
      ...lines4.map((line) => `not done: ip ${line}`),
      ...lines6.map((line) => `not done: ip -6 ${line}`),
      ...leftovers.map((line) => `not done: ip ${line}`),
    ],
    steps: [
      ...(table.length > 0 ? [{ file: "nft", args: ["-f", "-"], input: tableText(plan, state) }] : []),
      ...ipBatch([], lines4),
      ...ipBatch(["-6"], lines6),
      ...ipBatch([], leftovers),
    ],
  };
}

function tableText({ table }: GatewayPlan, state: GatewayState): string {
  const script = tableScript(table, state.table, COMPARISON);
  if (state.table === undefined || hasLayout(table, state.table)) return script;
  // A table of another layout is made anew; its clients go over in the same transaction.
  return script + peerScript({ put: peersOf(state), removed: new Map() });
}
