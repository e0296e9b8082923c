import { BlockList, isIPv4 } from "node:net";

/**
 * Tells which addresses are in none of some networks.
 *
 * @param cidrs the networks
 */
export function outsideTest(cidrs: readonly string[]): (address: string) => boolean {
  const networks = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", length] = cidr.split("/");
    networks.addSubnet(network, Number(length), familyOf(network));
  }
  return (address) => !networks.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv4(address) ? "ipv4" : "ipv6";
}
