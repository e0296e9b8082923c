import type { NftTableState } from "./state.ts";
import { kernelComment, type NftTable, renderTable } from "./table.ts";

/**
 * What of `table` the kernel lacks or has otherwise, in words; empty when they agree.
 *
 * @param keep names of sets whose elements are not compared
 */
export function tableDifferences(
  table: NftTable,
  state: NftTableState | undefined,
  keep: ReadonlySet<string> = new Set(),
): string[] {
  if (state === undefined) return [`nft table ${table.name} is missing`];
  const differences: string[] = [];
  for (const chain of table.chains) {
    const actual = state.chains.get(chain.name);
    if (actual === undefined) differences.push(`nft chain ${table.name} ${chain.name} is missing`);
    else if (!sameInOrder(chain.rules.map(kernelComment), actual)) {
      differences.push(`nft chain ${table.name} ${chain.name} has other rules`);
    }
  }
  for (const set of table.sets) {
    const actual = state.sets.get(set.name);
    if (actual === undefined) differences.push(`nft set ${table.name} ${set.name} is missing`);
    else if (
      !keep.has(set.name) &&
      !sameInOrder([...set.elements].sort(), actual.map(({ text }) => text).sort())
    ) {
      differences.push(`nft set ${table.name} ${set.name} has other elements`);
    }
  }
  for (const name of strangers(table, state))
    differences.push(`nft ${name} of ${table.name} is not founat's`);
  return differences;
}

/**
 * One transaction that makes the kernel's table equal to `table`. Chains stay hooked and conntrack stays as it is, so
 * that flows do not notice; a table of another layout (another version's) is replaced as a whole.
 *
 * @param keep names of sets whose elements stay as they are
 */
export function tableScript(
  table: NftTable,
  state: NftTableState | undefined,
  keep: ReadonlySet<string> = new Set(),
): string {
  if (state === undefined) return renderTable(table);
  if (!hasLayout(table, state)) return `delete table inet ${table.name}\n${renderTable(table)}`;
  const flushed = table.sets.filter(({ name }) => !keep.has(name));
  return [
    `flush table inet ${table.name}`,
    ...flushed.map(({ name, kind }) => `flush ${kind} inet ${table.name} ${name}`),
    renderTable(table),
  ].join("\n");
}

/** Whether the kernel's table has the sets and chains of `table`, and no others. */
export function hasLayout(table: NftTable, state: NftTableState): boolean {
  return (
    strangers(table, state).length === 0 &&
    table.sets.every(({ name }) => state.sets.has(name)) &&
    table.chains.every(({ name }) => state.chains.has(name))
  );
}

function strangers(table: NftTable, state: NftTableState): string[] {
  const sets = new Set(table.sets.map(({ name }) => name));
  const chains = new Set(table.chains.map(({ name }) => name));
  return [
    ...[...state.sets.keys()].filter((name) => !sets.has(name)).map((name) => `set ${name}`),
    ...[...state.chains.keys()].filter((name) => !chains.has(name)).map((name) => `chain ${name}`),
  ];
}

function sameInOrder(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}
