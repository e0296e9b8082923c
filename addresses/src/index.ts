/** IP addresses, as all of egress-nat speaks of them. It runs wherever ECMAScript does. */

export * from "./address.ts";
export * from "./family.ts";
export * from "./prefix.ts";
export * from "./range.ts";
