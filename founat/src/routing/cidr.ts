/** Addresses and networks of configurations: what is none is the fault of whoever wrote it. */

import * as addresses from "@egress-nat/addresses";
import { type Address, containsPrefix, type Family, type Prefix } from "@egress-nat/addresses";
import { FounatError } from "../error.ts";

/** RFC 1918 and RFC 4193: what a private network may use without asking. */
export const PRIVATE_RANGES = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"] as const;

/**
 * @param address a v4 or v6 address, without a zone
 * @throws FounatError `invalid-config` when it is no address
 */
export function parseAddress(address: string): Address {
  return addresses.parseAddress(address) ?? refuse(`${JSON.stringify(address)} is not an IP address`);
}

/** @throws FounatError `invalid-config` when it is no address */
export function canonicalAddress(address: string): string {
  return addresses.canonicalAddress(address) ?? refuse(`${JSON.stringify(address)} is not an IP address`);
}

/**
 * @param cidr an address and a prefix length, or an address alone; host bits are masked
 * @throws FounatError `invalid-config` when it is neither
 */
export function parseCidr(cidr: string): Prefix {
  const prefix = addresses.parseCidr(cidr);
  if (prefix !== undefined) return prefix;
  parseAddress(cidr.split("/")[0] ?? "");
  return refuse(`${JSON.stringify(cidr)} is not a CIDR: write one like 192.0.2.0/24`);
}

/** The prefixes of one family among `cidrs`. */
export function prefixesOf(family: Family, cidrs: Iterable<string>): Prefix[] {
  return Array.from(cidrs, parseCidr).filter((prefix) => prefix.family === family);
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

function refuse(reason: string): never {
  throw new FounatError("invalid-config", reason);
}
