import { ipVersion, parseIp, stringifyIp } from "ip-bigint";
import { type Family, familyOf } from "./family.ts";

export interface Address {
  readonly family: Family;
  readonly value: bigint;
}

/**
 * Whether a text is a v4 or v6 address. One with a zone is none: it means something on one host only. An IPv4 address has
 * one spelling, so numbers with a leading zero, which some read as octal, are refused.
 */
export function isAddress(text: string): boolean {
  return ipVersion(text) !== 0 && !text.includes("%");
}

/** @returns undefined when it is no address ({@link isAddress}) */
export function parseAddress(text: string): Address | undefined {
  if (!isAddress(text)) return undefined;
  return { family: familyOf(text), value: parseIp(text, { validate: false }).number };
}

/**
 * The one spelling of an address. IPv6 is written as RFC 5952, section 4, has it, with hexadecimal digits throughout:
 * `::ffff:a00:1`, while inet_ntop(3), and so `ip` and `nft`, print `::ffff:10.0.0.1`.
 */
export function formatAddress(family: Family, value: bigint): string {
  return stringifyIp({ number: value, version: family === "ipv4" ? 4 : 6 });
}

/**
 * The spelling by which addresses can be compared.
 *
 * @returns undefined when it is no address ({@link isAddress})
 */
export function canonicalAddress(text: string): string | undefined {
  // An IPv4 address has one spelling.
  if (familyOf(text) === "ipv4") return isAddress(text) ? text : undefined;
  const address = parseAddress(text);
  return address && formatAddress(address.family, address.value);
}

/** Whether it is an IPv4 address in IPv6's spelling: https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.2 */
export function isMapped({ family, value }: Address): boolean {
  return family === "ipv6" && value >> 32n === 0xffffn;
}
