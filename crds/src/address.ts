/** IP addresses and CIDRs as the API accepts them. */

import { BlockList, isIPv4, isIPv6 } from "node:net";
import { z } from "zod";
import { withRules } from "./rule.ts";

/** The longest spelling of an IPv6 address is 39 characters; `/128` makes it 43. */
const MAX_ADDRESS_LENGTH = 39;
const MAX_CIDR_LENGTH = 43;

/** IPv4-mapped addresses, however they are spelt: https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.2 */
const MAPPED = new BlockList();
MAPPED.addSubnet("::ffff:0:0", 96, "ipv6");

/** An IPv4 or IPv6 address, without zone; IPv4-mapped IPv6 addresses are refused, as CEL's isIP does. */
export const Address = withRules(z.string().max(MAX_ADDRESS_LENGTH), {
  cel: "isIP(self)",
  holds: isAddress,
  message: '"{self}" is not an IP address: write one like 192.0.2.1 or 2001:db8::1',
});

/** An IPv4 or IPv6 network. Host bits may be set: whoever reads it masks them. */
export const Cidr = withRules(z.string().max(MAX_CIDR_LENGTH), {
  cel: "isCIDR(self)",
  holds: isCidr,
  message: '"{self}" is not a CIDR: write an address and a prefix length, like 192.0.2.0/24 or 2001:db8::/32',
});

/** Whether all addresses of `inner` are in `outer`; false where either is no CIDR. */
export function containsCidr(outer: string, inner: string): boolean {
  if (!isCidr(outer) || !isCidr(inner)) return false;
  const [network, length] = parts(outer);
  const [address, innerLength] = parts(inner);
  const family = isIPv4(network) ? "ipv4" : "ipv6";
  if (isIPv4(address) !== isIPv4(network) || innerLength < length) return false;
  const addresses = new BlockList();
  addresses.addSubnet(network, length, family);
  return addresses.check(address, family);
}

function parts(cidr: string): [address: string, prefixLength: number] {
  const [address = "", length] = cidr.split("/");
  return [address, Number(length)];
}

function isAddress(text: string): boolean {
  return isIPv4(text) || (isIPv6(text) && !text.includes("%") && !MAPPED.check(text, "ipv6"));
}

function isCidr(text: string): boolean {
  const [address = "", prefix = "", ...rest] = text.split("/");
  if (rest.length > 0 || !isAddress(address) || !/^(0|[1-9]\d{0,2})$/.test(prefix)) return false;
  return Number(prefix) <= (isIPv4(address) ? 32 : 128);
}
