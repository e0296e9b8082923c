import { FAMILIES, type Family } from "@egress-nat/addresses";
import { VERSION } from "../spelling.ts";

/** The word for a family's header in nft. */
export const IP: Readonly<Record<Family, string>> = { ipv4: "ip", ipv6: "ip6" };

// What tells the families apart costs each packet of the second one, and IPv6 is the slower one as it is.
const ORDER = FAMILIES.toReversed();

/**
 * The rule that `text` makes of each family, a line for each; an empty one is none.
 *
 * @param text given nft's word for the family's header (`ip`, `ip6`) and the ending of its sets' names
 */
export function perFamily(text: (ip: string, version: string, family: Family) => string): string {
  return ORDER.map((family) => text(IP[family], VERSION[family], family)).join("\n");
}
