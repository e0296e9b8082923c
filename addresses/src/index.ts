/** IP addresses, as all of egress-nat speaks of them. It runs wherever ECMAScript does. */

export {
  type Address,
  canonicalAddress,
  formatAddress,
  isAddress,
  isMapped,
  parseAddress,
} from "./address.ts";
export { ADDRESS_BITS, type Addresses, FAMILIES, type Family, familyOf, firstOfEach } from "./family.ts";
export {
  aggregate,
  byFamilyAndAddress,
  containsPrefix,
  formatCidr,
  type Prefix,
  parseCidr,
  rangeOf,
} from "./prefix.ts";
export { formatRange, mergeRanges, type Range } from "./range.ts";
