export type Family = "ipv4" | "ipv6";

export const FAMILIES: readonly Family[] = ["ipv4", "ipv6"];

/** What the names of a family's sets end in. */
export const VERSION: Readonly<Record<Family, string>> = { ipv4: "4", ipv6: "6" };

/**
 * A sysctl, by its path below /proc/sys, that is there where the kernel knows IPv6, whatever its value: one booted with
 * `ipv6.disable=1` takes no rule and no route of IPv6, and shows none.
 */
export const OF_IPV6 = "net/ipv6/conf/all/disable_ipv6";

/** At most one address of each family. */
export interface Addresses {
  readonly ipv4?: string;
  readonly ipv6?: string;
}
