import { formatAddress } from "./address.ts";
import { ADDRESS_BITS, type Family } from "./family.ts";

/** Addresses of one family from `first` to `last`, both included. */
export interface Range {
  readonly first: bigint;
  readonly last: bigint;
}

/** Joins ranges that overlap or touch. */
export function mergeRanges(ranges: Iterable<Range>): Range[] {
  const merged: Range[] = [];
  for (const range of [...ranges].sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const before = merged.at(-1);
    if (before !== undefined && range.first <= before.last + 1n) {
      if (range.last > before.last) merged[merged.length - 1] = { first: before.first, last: range.last };
    } else {
      merged.push(range);
    }
  }
  return merged;
}

/** An address, a CIDR where the range is one, else `first-last`. */
export function formatRange(family: Family, { first, last }: Range): string {
  const start = formatAddress(family, first);
  if (first === last) return start;
  const size = last - first + 1n;
  const hostBits = size.toString(2).length - 1;
  const isCidr = size === 1n << BigInt(hostBits) && first % size === 0n;
  return isCidr ? `${start}/${ADDRESS_BITS[family] - hostBits}` : `${start}-${formatAddress(family, last)}`;
}

/** What is left of a range without others in it, which are apart and in order. */
export function gapsOf({ first, last }: Range, others: readonly Range[]): Range[] {
  const gaps: Range[] = [];
  let next = first;
  for (const other of others) {
    if (next < other.first) gaps.push({ first: next, last: other.first - 1n });
    next = other.last + 1n;
  }
  return next <= last ? [...gaps, { first: next, last }] : gaps;
}
