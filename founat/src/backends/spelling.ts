import type { Family } from "@egress-nat/addresses";

/** What the names of a family's sets end in. */
export const VERSION: Readonly<Record<Family, string>> = { ipv4: "4", ipv6: "6" };

/** A mark or a group, as all of these programs print it. */
export function hex(number: number): string {
  return `0x${number.toString(16)}`;
}
