import { type Addresses, familiesOf, familyOf, firstOfEach } from "@egress-nat/addresses";
import type { Gateway } from "./view.ts";

/** The Service's addresses of those families in which a gateway serves: to any other, packets would vanish. */
export function target(serviceIPs: readonly string[], gateways: readonly Gateway[]): Addresses {
  const served = familiesOf(gateways.filter(({ serving }) => serving).flatMap(({ addresses }) => addresses));
  return firstOfEach(serviceIPs.filter((address) => served.has(familyOf(address))));
}
