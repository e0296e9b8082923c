export type Family = "ipv4" | "ipv6";

export const FAMILIES: readonly Family[] = ["ipv4", "ipv6"];

export const ADDRESS_BITS: Readonly<Record<Family, number>> = { ipv4: 32, ipv6: 128 };

/** At most one address of each family. */
export interface Addresses {
  readonly ipv4?: string;
  readonly ipv6?: string;
}

/** The first address of each family. */
export function firstOfEach(addresses: readonly string[]): Addresses {
  return Object.fromEntries(addresses.toReversed().map((address) => [familyOf(address), address]));
}

/** @param addresses addresses or CIDRs */
export function familiesOf(addresses: readonly string[]): ReadonlySet<Family> {
  return new Set(addresses.map(familyOf));
}

/** For people. */
export function familyName(family: Family): string {
  return family === "ipv4" ? "IPv4" : "IPv6";
}

/** @param text an address or a CIDR; of anything else this says nothing */
export function familyOf(text: string): Family {
  return text.includes(":") ? "ipv6" : "ipv4";
}
