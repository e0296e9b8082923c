import { formatAddress, rangeOf } from "@egress-nat/addresses";
import fc from "fast-check";
import { parseCidr } from "../routing/cidr.ts";

/** IPv4 prefixes of few distinct bits, so that they nest, touch and repeat. */
const prefix = fc
  .tuple(
    fc.constantFrom(10, 11, 100, 128, 192, 203),
    fc.constantFrom(0, 1, 168, 255),
    fc.constantFrom(0, 7, 128),
    fc.constantFrom(0, 1, 8, 15, 16, 17, 24, 25, 32),
  )
  .map(([a, b, c, length]) => {
    const { first } = parseCidr(`${a}.${b}.${c}.0/${length}`);
    return `${formatAddress("ipv4", first)}/${length}`;
  });

const prefixes = (maxLength: number) => fc.array(prefix, { maxLength });

/** What one to three Egresses and a cluster may look like. */
export const situation = fc.record({
  carriers: fc
    .array(
      fc.record({
        destinations: fc.array(prefix, { minLength: 1, maxLength: 4 }),
        excluded: prefixes(3),
      }),
      { minLength: 1, maxLength: 3 },
    )
    .map((list) => list.map((carrier, index) => ({ ...carrier, name: `egress-${index}` }))),
  clusterRanges: prefixes(3),
  mainRoutes: prefixes(3).map((list) => list.filter((cidr) => !cidr.endsWith("/0"))),
});

export type Situation = typeof situation extends fc.Arbitrary<infer T> ? T : never;

/** Whether an IPv4 address is in a CIDR. */
export function holds(cidr: string, address: bigint): boolean {
  const range = parseCidr(cidr);
  return range.family === "ipv4" && range.first <= address && address <= rangeOf(range).last;
}

/** Where something may change: both sides of the boundaries of IPv4 CIDRs. */
export function aroundBoundaries(cidrs: readonly string[]): bigint[] {
  return cidrs.flatMap((cidr) => {
    const range = parseCidr(cidr);
    if (range.family !== "ipv4") return [];
    const last = rangeOf(range).last;
    return [range.first, last, range.first - 1n, last + 1n].filter((a) => a >= 0n && a < 1n << 32n);
  });
}
