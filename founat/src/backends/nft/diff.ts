import { isDeepStrictEqual } from "node:util";
import type { Difference } from "../../difference.ts";
import type { NftChainState, NftTableState } from "./state.ts";
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
  comparison: TableComparison = {},
): Difference[] {
  const { name, chains, sets, flowtables = [] } = table;
  const words = layoutDifference(state, comparison.listing);
  if (state === undefined || words !== undefined) return difference("table", name, words);
  return [
    ...chains.flatMap((chain) =>
      difference("chain", `${name} ${chain.name}`, chainDifference(chain, state, comparison)),
    ),
    ...sets.flatMap((set) => difference("set", `${name} ${set.name}`, setDifference(set, state, comparison))),
    ...flowtables.flatMap((flowtable) =>
      difference("flowtable", `${name} ${flowtable.name}`, flowtableDifference(flowtable, state)),
    ),
    ...strangers(table, state).flatMap(([object, stranger]) =>
      difference(object, stranger, `of ${name} is not founat's`),
    ),
  ];
}

/**
 * One transaction that makes the kernel's table equal to `table`. Chains stay hooked and conntrack stays as it is, so
 * that flows do not notice, and counters count on; a table of another layout (another version's) is replaced as a whole.
 * Flowtables are made again: the next packet of each flow asks the new rules.
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
    ...goneChains(table, state).map((name) => `delete chain inet ${table.name} ${name}`),
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

/**
 * Whether the kernel's table has the sets and chains of `table`, and no others. Chains may come and go.
 */
export function hasLayout(table: NftTable, state: NftTableState, { listing }: TableComparison = {}): boolean {
  const isSame = (kind: "sets" | "chains", name: string) =>
    layoutDifference(state[kind].get(name), listing?.[kind].get(name)) === undefined;
  return (
    layoutDifference(state, listing) === undefined &&
    strangers(table, state).every(([object]) => object === "chain") &&
    table.sets.every(({ name }) => isSame("sets", name)) &&
    table.chains.every(({ name }) => isSame("chains", name) || !state.chains.has(name))
  );
}

function goneChains({ chains }: NftTable, state: NftTableState): string[] {
  return [...state.chains.keys()].filter((name) => !chains.some((chain) => chain.name === name));
}

/** Of a table, a chain or a set, whatever is in it. */
function layoutDifference(
  actual: { readonly definition: string } | undefined,
  listed: { readonly definition: string } | undefined,
): string | undefined {
  if (actual === undefined) return "is missing";
  return listed !== undefined && listed.definition !== actual.definition ? "is another one" : undefined;
}

function chainDifference({ name, rules }: NftChain, state: NftTableState, { listing }: TableComparison) {
  const [actual, listed] = [state.chains.get(name), listing?.chains.get(name)];
  const words = layoutDifference(actual, listed);
  if (actual === undefined || words !== undefined) return words;
  const comments = actual.rules.map(({ comment }) => comment);
  const bodies = ({ rules }: NftChainState) => rules.map(({ body }) => body);
  const isSame =
    isDeepStrictEqual(rules.map(kernelComment), comments) &&
    (listed === undefined || isDeepStrictEqual(bodies(listed), bodies(actual)));
  return isSame ? undefined : "has other rules";
}

function setDifference({ name, elements }: NftSet, state: NftTableState, { keep, listing }: TableComparison) {
  const actual = state.sets.get(name);
  const words = layoutDifference(actual, listing?.sets.get(name));
  if (actual === undefined || words !== undefined || keep?.has(name)) return words;
  const texts = Array.from(actual.elements, ({ text }) => text);
  return isDeepStrictEqual(elements.toSorted(), texts.sort()) ? undefined : "has other elements";
}

function flowtableDifference({ name, devices }: NftFlowtable, { flowtables }: NftTableState) {
  const actual = flowtables.get(name);
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

function difference(object: string, name: string, words: string | undefined): Difference[] {
  return words === undefined ? [] : [{ object, text: `nft ${object} ${name} ${words}` }];
}
