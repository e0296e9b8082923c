export type Family = "ipv4" | "ipv6";

export const FAMILIES: readonly Family[] = ["ipv4", "ipv6"];

/** At most one address of each family. */
export interface Addresses {
  readonly ipv4?: string;
  readonly ipv6?: string;
}
