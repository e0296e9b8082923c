import { type Family, formatAddress } from "@egress-nat/addresses";
import { parseCidr } from "./cidr.ts";

/**
 * Where gateways answer echo requests that come through the tunnel: addresses of no network, so that no route and no
 * destination has to give way. IPv4: of the IETF's protocol assignments (RFC 6890), those that are not assigned. IPv6:
 * the dummy prefix (RFC 9780).
 */
export const PROBE_PREFIXES: Readonly<Record<Family, string>> = {
  ipv4: "192.0.0.128/25",
  ipv6: "100:0:0:1::/64",
};

/** How many Egresses of a client can be probed. */
const MAX_PROBED = 127;

/**
 * Each Egress of a client has a probe address of its own: its route says which gateway is asked.
 *
 * @param index of the Egress among those of the client
 * @returns undefined where there are too many of them
 */
export function probeAddress(family: Family, index: number): string | undefined {
  if (index >= MAX_PROBED) return undefined;
  return formatAddress(family, parseCidr(PROBE_PREFIXES[family]).first + BigInt(index + 1));
}
