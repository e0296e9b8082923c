/** IP addresses and CIDRs as the API accepts them. */

import {
  containsPrefix,
  familyOf,
  isAddress,
  isMapped,
  parseAddress,
  parseCidr,
} from "@egress-nat/addresses";
import { z } from "zod";
import { withRules } from "./rule.ts";

/** The longest spelling of an IPv6 address is 39 characters; `/128` makes it 43. */
const MAX_ADDRESS_LENGTH = 39;
const MAX_CIDR_LENGTH = 43;

/** An IPv4 or IPv6 address, without zone; IPv4-mapped IPv6 addresses are refused, as CEL's isIP does. */
export const Address = withRules(z.string().max(MAX_ADDRESS_LENGTH), {
  cel: "isIP(self)",
  holds: isApiAddress,
  message: '"{self}" is not an IP address: write one like 192.0.2.1 or 2001:db8::1',
});

/** An address of one host that others may be routed to: CEL's isGlobalUnicast, which private addresses are as well. */
export const HostAddress = withRules(Address, {
  cel: "!isIP(self) || ip(self).isGlobalUnicast()",
  holds: (text) => !isApiAddress(text) || isGlobalUnicast(text),
  message: '"{self}" is not a routable address of a host: write one like 192.0.2.1 or 2001:db8::1',
});

/** An IPv4 or IPv6 network. Host bits may be set: whoever reads it masks them. */
export const Cidr = withRules(z.string().max(MAX_CIDR_LENGTH), {
  cel: "isCIDR(self)",
  holds: isCidr,
  message: '"{self}" is not a CIDR: write an address and a prefix length, like 192.0.2.0/24 or 2001:db8::/32',
});

/** Whether all addresses of `inner` are in `outer`; false where either is no CIDR. */
export function containsCidr(outer: string, inner: string): boolean {
  const [around, within] = [outer, inner].map((text) => (isCidr(text) ? parseCidr(text) : undefined));
  return around !== undefined && within !== undefined && containsPrefix(around, within);
}

/** What {@link Address} accepts: ten thousand addresses should not go through zod. */
export function isApiAddress(text: string): boolean {
  if (familyOf(text) === "ipv4") return isAddress(text);
  const address = parseAddress(text);
  return address !== undefined && !isMapped(address);
}

const NOT_GLOBAL_UNICAST = [
  ...["0.0.0.0/32", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32"],
  ...["::/128", "::1/128", "fe80::/10", "ff00::/8"],
];

function isGlobalUnicast(address: string): boolean {
  const cidr = `${address}/${familyOf(address) === "ipv4" ? 32 : 128}`;
  return !NOT_GLOBAL_UNICAST.some((range) => containsCidr(range, cidr));
}

function isCidr(text: string): boolean {
  const [address = "", length] = text.split("/");
  return length !== undefined && isApiAddress(address) && parseCidr(text) !== undefined;
}
