import { byFamilyAndAddress, containsPrefix, formatCidr, type Prefix } from "@egress-nat/addresses";
import { parseCidr } from "./cidr.ts";

/**
 * Visits networks from the outside in.
 *
 * @param networks each before those inside it ({@link byFamilyAndAddress})
 * @param visit makes something of a network, given what was made of the smallest one around it
 * @returns what was made of each
 */
export function visitNested<N extends { readonly prefix: Prefix }, V>(
  networks: readonly N[],
  visit: (network: N, around: V | undefined) => V,
): V[] {
  const open: { readonly prefix: Prefix; readonly value: V }[] = [];
  return networks.map((network) => {
    for (let top = open.at(-1); top && !containsPrefix(top.prefix, network.prefix); top = open.at(-1))
      open.pop();
    const value = visit(network, open.at(-1)?.value);
    open.push({ prefix: network.prefix, value });
    return value;
  });
}

/**
 * Masks host bits, drops duplicates and what another entry covers already.
 *
 * @returns v4 before v6, in the order of addresses
 * @throws FounatError `invalid-config` that names the malformed entry
 */
export function normalizeCidrs(cidrs: Iterable<string>): string[] {
  const networks = Array.from(cidrs, (cidr) => ({ prefix: parseCidr(cidr) }));
  networks.sort((a, b) => byFamilyAndAddress(a.prefix, b.prefix));
  const outermost = visitNested(
    networks,
    (network, around: (typeof networks)[number] | undefined) => around ?? network,
  );
  return Array.from(new Set(outermost), ({ prefix }) => formatCidr(prefix));
}
