import { isIPv4, isIPv6, SocketAddress } from "node:net";
import ipaddr from "ipaddr.js";
import { FounatError } from "../error.ts";
import type { Family } from "../family.ts";

/** A network: its first address as a number, and the length of its prefix in bits. */
export interface Prefix {
  readonly family: Family;
  readonly first: bigint;
  readonly length: number;
}

/** Addresses from `first` to `last`, both included. */
export interface Range {
  readonly first: bigint;
  readonly last: bigint;
}

export const ADDRESS_BITS: Readonly<Record<Family, number>> = { ipv4: 32, ipv6: 128 };

/** RFC 1918 and RFC 4193: what a private network may use without asking. */
export const PRIVATE_RANGES = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"] as const;

/**
 * @param address a v4 or v6 address, without a zone
 * @throws FounatError `invalid-config` when it is no address
 */
export function parseAddress(address: string): { family: Family; value: bigint } {
  // Of an address of the other family ipaddr.js finds out by an exception, which costs more than all the rest.
  if (isIPv4(address)) return { family: "ipv4", value: toNumber(ipaddr.IPv4.parse(address).toByteArray()) };
  if (!isIPv6(address) || address.includes("%")) throw notAnAddress(address);
  // ipaddr.js takes ::192.0.2.1 for ::ffff:192.0.2.1, unless another zero leads.
  const spelled = /^::\d+\./.test(address) ? `0${address}` : address;
  return { family: "ipv6", value: toNumber(ipaddr.IPv6.parse(spelled).toByteArray()) };
}

/**
 * The one spelling of an address by which it can be compared, that of `ip` and `nft`. Ten thousand clients should not
 * go through {@link parseAddress} for that.
 *
 * @throws FounatError `invalid-config` when it is no address
 */
export function canonicalAddress(address: string): string {
  // IPv4 has one spelling only.
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || address.includes("%")) throw notAnAddress(address);
  return new SocketAddress({ address, family: "ipv6" }).address;
}

/**
 * @param cidr an address and a prefix length, or an address alone; host bits are masked
 * @throws FounatError `invalid-config` when it is neither
 */
export function parseCidr(cidr: string): Prefix {
  const [address = "", length, ...rest] = cidr.split("/");
  const { family, value } = parseAddress(address);
  const bits = ADDRESS_BITS[family];
  const prefixLength = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (rest.length > 0 || !(prefixLength <= bits)) {
    throw new FounatError(
      "invalid-config",
      `${JSON.stringify(cidr)} is not a CIDR: write one like 192.0.2.0/24`,
    );
  }
  const hostBits = BigInt(bits - prefixLength);
  return { family, first: (value >> hostBits) << hostBits, length: prefixLength };
}

/** The usual spelling (RFC 5952 for v6). */
export function formatAddress(family: Family, value: bigint): string {
  const length = ADDRESS_BITS[family] / 8;
  const bytes = Array.from({ length }, (_, i) => Number((value >> BigInt(8 * (length - 1 - i))) & 0xffn));
  return ipaddr.fromByteArray(bytes).toString();
}

export function formatCidr(prefix: Prefix): string {
  return `${formatAddress(prefix.family, prefix.first)}/${prefix.length}`;
}

export function lastAddress({ family, first, length }: Prefix): bigint {
  return first + (1n << BigInt(ADDRESS_BITS[family] - length)) - 1n;
}

export function rangeOf(prefix: Prefix): Range {
  return { first: prefix.first, last: lastAddress(prefix) };
}

/** Whether all of `inner` is in `outer`. */
export function containsPrefix(outer: Prefix, inner: Prefix): boolean {
  return (
    outer.family === inner.family &&
    outer.length <= inner.length &&
    outer.first <= inner.first &&
    inner.first <= lastAddress(outer)
  );
}

/** Whether one of `cidrs` holds `address`. */
export function containsAddress(cidrs: Iterable<string>, address: string): boolean {
  const { family, value } = parseAddress(address);
  for (const cidr of cidrs) {
    const prefix = parseCidr(cidr);
    if (prefix.family === family && prefix.first <= value && value <= lastAddress(prefix)) return true;
  }
  return false;
}

/**
 * The fewest networks that hold the same addresses.
 *
 * @returns v4 before v6, in the order of addresses
 * @throws FounatError `invalid-config` that names the malformed entry
 */
export function aggregateCidrs(cidrs: Iterable<string>): string[] {
  const aggregated: Prefix[] = [];
  for (let prefix of Array.from(cidrs, parseCidr).sort(byFamilyAndAddress)) {
    const before = aggregated.at(-1);
    if (before !== undefined && containsPrefix(before, prefix)) continue;
    // Two halves of a network are that network, which may be a half itself.
    for (let half = aggregated.at(-1); half !== undefined; half = aggregated.at(-1)) {
      const whole = { ...half, length: half.length - 1 };
      if (!isNetwork(whole) || half.length !== prefix.length || !containsPrefix(whole, prefix)) break;
      aggregated.pop();
      prefix = whole;
    }
    aggregated.push(prefix);
  }
  return aggregated.map(formatCidr);
}

/**
 * Whether a destination lies wholly inside one private or in-cluster range; all others are wide.
 *
 * @param cidr the destination
 * @param clusterRanges CIDRs of pods, Services and nodes
 */
export function isNarrow(cidr: string, clusterRanges: readonly string[]): boolean {
  const prefix = parseCidr(cidr);
  return [...PRIVATE_RANGES, ...clusterRanges].some((range) => containsPrefix(parseCidr(range), prefix));
}

/** The prefixes of one family among `cidrs`. */
export function prefixesOf(family: Family, cidrs: Iterable<string>): Prefix[] {
  return Array.from(cidrs, parseCidr).filter((prefix) => prefix.family === family);
}

/** Sorts so that a network stands before all networks inside it. */
export function byFamilyAndAddress(a: Prefix, b: Prefix): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  if (a.first !== b.first) return a.first < b.first ? -1 : 1;
  return a.length - b.length;
}

/** Whether there is such a length, and no bit behind it is set. */
function isNetwork({ family, first, length }: Prefix): boolean {
  return length >= 0 && first % (1n << BigInt(ADDRESS_BITS[family] - length)) === 0n;
}

function notAnAddress(address: string): FounatError {
  return new FounatError("invalid-config", `${JSON.stringify(address)} is not an IP address`);
}

function toNumber(bytes: readonly number[]): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}
