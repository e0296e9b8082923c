import { type Addresses, type Family, familyOf } from "@egress-nat/addresses";
import type { Gateway } from "./view.ts";

/** The Service's addresses of those families in which a gateway serves: to any other, packets would vanish. */
export function target(serviceIPs: readonly string[], gateways: readonly Gateway[]): Addresses {
  const served = familiesOf(gateways.filter(({ serving }) => serving).flatMap(({ addresses }) => addresses));
  return Object.fromEntries(
    serviceIPs
      .map((address) => [familyOf(address), address] as const)
      .filter(([family]) => served.has(family)),
  );
}

/** @param addresses addresses or CIDRs */
export function familiesOf(addresses: readonly string[]): ReadonlySet<Family> {
  return new Set(addresses.map(familyOf));
}
