import { containsPrefix, parseCidr } from "@egress-nat/addresses";

/**
 * Tells which addresses are in none of some networks.
 *
 * @param cidrs the networks
 */
export function outsideTest(cidrs: readonly string[]): (address: string) => boolean {
  const networks = cidrs.flatMap((cidr) => parseCidr(cidr) ?? []);
  return (text) => {
    const address = parseCidr(text);
    return address !== undefined && !networks.some((network) => containsPrefix(network, address));
  };
}
