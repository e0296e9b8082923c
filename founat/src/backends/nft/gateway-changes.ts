import type { Changes } from "../../difference.ts";
import type { Peers } from "../../gateway/peers.ts";
import { hasLayout, type TableComparison, tableDifferences, tableScript } from "./diff.ts";
import { ingressChain } from "./gateway-chains.ts";
import { peerScript, peersOf } from "./peers.ts";
import type { NftTableState } from "./state.ts";
import { type NftTable, nftScript } from "./table.ts";

/**
 * What leads from the kernel's table to `table`, in one transaction. Clients stay as they are.
 *
 * @param replaced links that are gone by then
 * @param newcomers clients that the table gets
 */
export function tableChanges(
  table: NftTable,
  state: NftTableState | undefined,
  replaced: ReadonlySet<string>,
  comparison: TableComparison,
  newcomers: Peers,
): Changes {
  const rest = withoutLinks(state, replaced);
  const differences = tableDifferences(table, rest, comparison);
  const isSame = differences.length === 0;
  // A table of another layout is recreated, and its clients move to it.
  const isKept = isSame || rest === undefined || hasLayout(table, rest, comparison);
  const put = isKept ? newcomers : new Map([...peersOf(rest), ...newcomers]);
  const script =
    (isSame ? "" : tableScript(table, rest, comparison)) + peerScript({ put, removed: new Map() });
  return { differences, steps: script === "" ? [] : [nftScript(script)] };
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
