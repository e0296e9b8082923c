import { hasLayout, type TableComparison, tableDifferences, tableScript } from "../backends/nft/diff.ts";
import type { NftTableState } from "../backends/nft/state.ts";
import type { NftTable } from "../backends/nft/table.ts";
import { type Difference, notDone } from "../difference.ts";
import { ipBatch, routingLines } from "../iproute/batch.ts";
import { leftoverLinks, linkChanges, linkRemovals } from "../iproute/links.ts";
import type { Step } from "../kernel/step.ts";
import { peerScript } from "./peers.ts";
import { GATEWAY_TABLES, type GatewayPlan } from "./plan.ts";
import { type GatewayState, peersOf } from "./state.ts";
import { CLIENT_SETS, ingressChain } from "./table.ts";

export interface GatewayChanges {
  /** Empty when the kernel is as planned. */
  readonly differences: readonly Difference[];
  /** What makes the kernel as planned: the packet filter, which needs the links, is there before they are up. */
  readonly steps: readonly Step[];
}

/**
 * What leads from the kernel's state to the plan. Clients stay as they are.
 *
 * @param comparison how the table is compared; the elements of clients' sets are not, unless it says otherwise
 */
export function gatewayChanges(
  plan: GatewayPlan,
  state: GatewayState,
  { listing, keep = CLIENT_SETS }: TableComparison = {},
): GatewayChanges {
  const links = linkChanges(plan, state);
  const tableState = withoutLinks(state.table, links.replaced);
  const comparison = { keep, listing };
  const table = tableDifferences(plan.table, tableState, comparison);
  const lines4 = [
    ...loopbackLines(state),
    ...links.bringUp,
    ...routingLines("ipv4", plan, state, GATEWAY_TABLES, links.replaced),
  ];
  const lines6 = routingLines("ipv6", plan, state, GATEWAY_TABLES, links.replaced);
  const removals = linkRemovals(plan, state);
  // A link that the new packet filter knows nothing of would bring in packets without their check.
  const stops = leftoverLinks(plan, state)
    .filter(({ up }) => up)
    .map(({ name }) => `link set ${name} down`);
  return {
    differences: [
      ...table,
      ...notDone("ip", [...links.make, ...lines4]),
      ...notDone("ip -6", lines6),
      ...notDone("ip", removals),
    ],
    steps: [
      ...ipBatch([], [...stops, ...links.make]),
      ...(table.length > 0
        ? [{ file: "nft", args: ["-f", "-"], input: tableText(plan.table, tableState, comparison) }]
        : []),
      ...ipBatch([], lines4),
      ...ipBatch(["-6"], lines6),
      ...ipBatch([], removals),
    ],
  };
}

/** The way of probes ends at lo. The kernel takes no route by an interface that is down. */
function loopbackLines({ links }: GatewayState): string[] {
  return links.some(({ name, up }) => name === "lo" && !up) ? ["link set lo up"] : [];
}

function tableText(table: NftTable, state: NftTableState | undefined, comparison: TableComparison): string {
  const script = tableScript(table, state, comparison);
  if (state === undefined || hasLayout(table, state, comparison)) return script;
  // A table of another layout is recreated, and its clients move to it in the same transaction.
  return script + peerScript({ put: peersOf(state), removed: new Map() });
}

/** What is left of the table once links are gone: the kernel takes away what hangs on them. */
function withoutLinks(
  table: NftTableState | undefined,
  links: ReadonlySet<string>,
): NftTableState | undefined {
  if (table === undefined) return undefined;
  const gone = new Set(Array.from(links, ingressChain));
  return {
    ...table,
    chains: new Map([...table.chains].filter(([name]) => !gone.has(name))),
    flowtables: new Map(
      Array.from(table.flowtables, ([name, devices]) => [
        name,
        devices.filter((device) => !links.has(device)),
      ]),
    ),
  };
}
