import { isDeepStrictEqual } from "node:util";
import type { Difference } from "../../difference.ts";
import type { NftChainState, NftSetState, NftTableState } from "./state.ts";
import {
  kernelComment,
  type NftChain,
  type NftFlowtable,
  type NftSet,
  type NftTable,
  renderTable,
} from "./table.ts";

export interface TableComparison {
  /** Names of sets whose elements are not compared, and stay as they are. */
  readonly keep?: ReadonlySet<string>;
  /** How nft lists the table without its elements; absent: of rules only comments are compared, of chains names. */
  readonly listing?: NftTableState | undefined;
}

/** What of `table` the kernel lacks or has otherwise; empty when they agree. */
export function tableDifferences(
  table: NftTable,
  state: NftTableState | undefined,
  { keep, listing }: TableComparison = {},
): Difference[] {
  if (state === undefined) return [difference("table", table.name, "is missing")];
  if (listing !== undefined && listing.definition !== state.definition) {
    return [difference("table", table.name, "is another one")];
  }
  const differ = (object: string, name: string, words: string | undefined) =>
    words === undefined ? [] : [difference(object, `${table.name} ${name}`, words)];
  return [
    ...table.chains.flatMap((chain) => {
      const [actual, listed] = [state.chains.get(chain.name), listing?.chains.get(chain.name)];
      return differ("chain", chain.name, chainDifference(chain, actual, listed));
    }),
    ...table.sets.flatMap((set) => {
      const [actual, listed] = [state.sets.get(set.name), listing?.sets.get(set.name)];
      return differ("set", set.name, setDifference(set, actual, listed, keep?.has(set.name)));
    }),
    ...(table.flowtables ?? []).flatMap((flowtable) =>
      differ(
        "flowtable",
        flowtable.name,
        flowtableDifference(flowtable, state.flowtables.get(flowtable.name)),
      ),
    ),
    ...strangers(table, state).map(([object, name]) =>
      difference(object, name, `of ${table.name} is not founat's`),
    ),
  ];
}

/**
 * One transaction that makes the kernel's table equal to `table`. Chains stay hooked and conntrack stays as it is, so
 * that flows do not notice; a table of another layout (another version's) is replaced as a whole. Flowtables are made
 * again: the next packet of each flow asks the new rules.
 */
export function tableScript(
  table: NftTable,
  state: NftTableState | undefined,
  comparison: TableComparison = {},
): string {
  if (state === undefined) return renderTable(table);
  if (!hasLayout(table, state, comparison)) return `delete table inet ${table.name}\n${renderTable(table)}`;
  const flushed = table.sets.filter(({ name }) => !comparison.keep?.has(name));
  return [
    `flush table inet ${table.name}`,
    ...flushed.map(({ name, kind }) => `flush ${kind} inet ${table.name} ${name}`),
    ...[...state.flowtables.keys()].map((name) => `delete flowtable inet ${table.name} ${name}`),
    renderTable(table),
  ].join("\n");
}

/**
 * One transaction that makes a table if there is none, and fails where there is one. The first line holds the comment
 * too: what adds to a table that is there leaves its comment as it is.
 */
export function creationScript(table: NftTable): string {
  return `create table inet ${table.name} { comment "${table.comment}"; }\n${renderTable(table)}`;
}

/** Whether the kernel's table has the sets and chains of `table`, and no others. */
export function hasLayout(table: NftTable, state: NftTableState, { listing }: TableComparison = {}): boolean {
  const isSame = (kind: "sets" | "chains", name: string) => {
    const actual = state[kind].get(name);
    const wanted = listing?.[kind].get(name) ?? actual;
    return actual !== undefined && actual.definition === wanted?.definition;
  };
  return (
    state.definition === (listing ?? state).definition &&
    strangers(table, state).length === 0 &&
    table.sets.every(({ name }) => isSame("sets", name)) &&
    table.chains.every(({ name }) => isSame("chains", name))
  );
}

function chainDifference(
  { rules }: NftChain,
  actual: NftChainState | undefined,
  listed: NftChainState | undefined,
): string | undefined {
  if (actual === undefined) return "is missing";
  if (listed !== undefined && listed.definition !== actual.definition) return "is another one";
  const comments = actual.rules.map(({ comment }) => comment);
  const bodies = ({ rules }: NftChainState) => rules.map(({ body }) => body);
  const isSame =
    isDeepStrictEqual(rules.map(kernelComment), comments) &&
    (listed === undefined || isDeepStrictEqual(bodies(listed), bodies(actual)));
  return isSame ? undefined : "has other rules";
}

function setDifference(
  { elements }: NftSet,
  actual: NftSetState | undefined,
  listed: NftSetState | undefined,
  keep = false,
): string | undefined {
  if (actual === undefined) return "is missing";
  if (listed !== undefined && listed.definition !== actual.definition) return "is another one";
  if (keep) return undefined;
  const texts = Array.from(actual.elements, ({ text }) => text);
  return isDeepStrictEqual(elements.toSorted(), texts.sort()) ? undefined : "has other elements";
}

function flowtableDifference(
  { devices }: NftFlowtable,
  actual: readonly string[] | undefined,
): string | undefined {
  if (actual === undefined) return "is missing";
  return isDeepStrictEqual(devices.toSorted(), actual.toSorted()) ? undefined : "has other devices";
}

function strangers(table: NftTable, state: NftTableState): (readonly [object: string, name: string])[] {
  const others = (
    object: string,
    actual: ReadonlyMap<string, unknown>,
    ours: readonly { readonly name: string }[] = [],
  ) =>
    [...actual.keys()]
      .filter((name) => !ours.some((our) => our.name === name))
      .map((name) => [object, name] as const);
  return [
    ...others("set", state.sets, table.sets),
    ...others("chain", state.chains, table.chains),
    ...others("flowtable", state.flowtables, table.flowtables),
  ];
}

function difference(object: string, name: string, words: string): Difference {
  return { object, text: `nft ${object} ${name} ${words}` };
}
