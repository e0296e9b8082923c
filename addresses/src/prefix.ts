import { formatAddress, parseAddress } from "./address.ts";
import { ADDRESS_BITS, FAMILIES, type Family } from "./family.ts";
import { mergeRanges, type Range } from "./range.ts";

/** A network: its first address as a number, and the length of its prefix in bits. */
export interface Prefix {
  readonly family: Family;
  readonly first: bigint;
  readonly length: number;
}

const LENGTH = /^(0|[1-9]\d{0,2})$/;

/**
 * @param cidr an address and a prefix length, or an address alone; host bits are masked
 * @returns undefined when it is neither
 */
export function parseCidr(cidr: string): Prefix | undefined {
  const [text = "", lengthText, ...rest] = cidr.split("/");
  const address = parseAddress(text);
  if (address === undefined || rest.length > 0) return undefined;
  const { family, value } = address;
  const bits = ADDRESS_BITS[family];
  const length = lengthText === undefined ? bits : LENGTH.test(lengthText) ? Number(lengthText) : Number.NaN;
  if (!(length <= bits)) return undefined;
  const hostBits = BigInt(bits - length);
  return { family, first: (value >> hostBits) << hostBits, length };
}

/** With its length, that of a single address as well. */
export function formatCidr({ family, first, length }: Prefix): string {
  return `${formatAddress(family, first)}/${length}`;
}

export function rangeOf({ family, first, length }: Prefix): Range {
  return { first, last: first + (1n << BigInt(ADDRESS_BITS[family] - length)) - 1n };
}

/** Whether all of `inner` is in `outer`. */
export function containsPrefix(outer: Prefix, inner: Prefix): boolean {
  if (outer.family !== inner.family || outer.length > inner.length) return false;
  const hostBits = BigInt(ADDRESS_BITS[outer.family] - outer.length);
  return outer.first >> hostBits === inner.first >> hostBits;
}

/** Sorts so that a network stands before all networks inside it. */
export function byFamilyAndAddress(a: Prefix, b: Prefix): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  if (a.first !== b.first) return a.first < b.first ? -1 : 1;
  return a.length - b.length;
}

/**
 * The fewest networks that hold the same addresses.
 *
 * @returns v4 before v6, in the order of addresses
 */
export function aggregate(prefixes: readonly Prefix[]): Prefix[] {
  return FAMILIES.flatMap((family) => {
    const ranges = prefixes.filter((prefix) => prefix.family === family).map(rangeOf);
    return mergeRanges(ranges).flatMap((range) => networksOf(family, range));
  });
}

/** The fewest networks that are a range, in order. */
export function networksOf(family: Family, { first, last }: Range): Prefix[] {
  if (first > last) return [];
  for (let length = 0; ; length++) {
    const { last: end } = rangeOf({ family, first, length });
    const isNetwork = first % (end - first + 1n) === 0n;
    if (isNetwork && end <= last)
      return [{ family, first, length }, ...networksOf(family, { first: end + 1n, last })];
  }
}
