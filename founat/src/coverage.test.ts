import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { formatAddress, isNarrow, lastAddress, PRIVATE_RANGES, parseAddress, parseCidr } from "./cidr.ts";
import { type Carrier, carriedRanges, decide, NEVER_CARRIED } from "./coverage.ts";

vi.setConfig({ testTimeout: 60_000 });

interface Named extends Carrier {
  readonly name: string;
}

// Few distinct bits, so that the prefixes nest, touch and repeat.
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
const cidrs = (max: number) => fc.array(prefix, { maxLength: max });
const carriers = fc
  .array(fc.record({ destinations: fc.array(prefix, { minLength: 1, maxLength: 4 }), excluded: cidrs(3) }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((list) => list.map((carrier, index): Named => ({ ...carrier, name: `egress-${index}` })));
const input = fc.record({ carriers, clusterRanges: cidrs(3), mainRoutes: cidrs(3) });

const holds = (cidr: string, address: bigint) => {
  const p = parseCidr(cidr);
  return p.family === "ipv4" && p.first <= address && address <= lastAddress(p);
};

/** The decision as design words put it, for one address and with no cleverness. */
function carrierOf(
  address: bigint,
  { carriers, clusterRanges, mainRoutes }: typeof input extends fc.Arbitrary<infer T> ? T : never,
) {
  if ([...clusterRanges, ...NEVER_CARRIED].some((cidr) => holds(cidr, address))) return undefined;
  const decidedBefore = [...PRIVATE_RANGES, ...mainRoutes].some((cidr) => holds(cidr, address));
  let best: { name: string; length: number } | undefined;
  for (const { name, destinations, excluded } of carriers) {
    if (excluded.some((cidr) => holds(cidr, address))) continue;
    for (const cidr of destinations.filter((cidr) => holds(cidr, address))) {
      const { length } = parseCidr(cidr);
      if (decidedBefore && !isNarrow(cidr, clusterRanges)) continue;
      if (best === undefined || length > best.length) best = { name, length };
    }
  }
  return best?.name;
}

/** Where something may change: both sides of every boundary. */
function interesting(cidrs: readonly string[]): bigint[] {
  return cidrs.flatMap((cidr) => {
    const p = parseCidr(cidr);
    if (p.family !== "ipv4") return [];
    const last = lastAddress(p);
    return [p.first, last, p.first - 1n, last + 1n].filter((a) => a >= 0n && a < 1n << 32n);
  });
}

describe("for all destinations, exclusions and ranges", () => {
  test("each address is carried by whom the rules say, and by nobody else", () => {
    fc.assert(
      fc.property(input, (given) => {
        const decisions = decide("ipv4", given.carriers, given);
        const ranges = new Map(
          given.carriers.map(({ name }) => [
            name,
            carriedRanges(decisions, (carrier) => carrier.name === name),
          ]),
        );
        const boundaries = [
          ...given.carriers.flatMap(({ destinations, excluded }) => [...destinations, ...excluded]),
          ...given.clusterRanges,
          ...given.mainRoutes,
          ...PRIVATE_RANGES,
          ...NEVER_CARRIED,
        ];
        for (const address of interesting(boundaries)) {
          const expected = carrierOf(address, given);
          const actual = [...ranges].filter(([, list]) =>
            list.some(({ first, last }) => first <= address && address <= last),
          );
          expect(actual.map(([name]) => name)).toEqual(expected === undefined ? [] : [expected]);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("ranges are disjoint and in order", () => {
    fc.assert(
      fc.property(input, (given) => {
        const ranges = carriedRanges(decide("ipv4", given.carriers, given));
        for (const [index, { first, last }] of ranges.entries()) {
          expect(first <= last).toBe(true);
          const next = ranges[index + 1];
          if (next !== undefined) expect(last + 1n < next.first).toBe(true);
        }
      }),
    );
  });
});

test("an exclusion holds for its own Egress: another one's wider destination carries the address", () => {
  const decisions = decide(
    "ipv4",
    [
      { name: "partner", destinations: ["203.0.113.0/24"], excluded: ["203.0.113.7/32"] },
      { name: "everything", destinations: ["0.0.0.0/0"], excluded: [] },
    ],
    { clusterRanges: [] },
  );
  const everything = carriedRanges(decisions, ({ name }) => name === "everything");
  const { value } = parseAddress("203.0.113.7");
  expect(everything.some(({ first, last }) => first <= value && value <= last)).toBe(true);
});

test("of two Egresses with the same destination the first carries it", () => {
  const same = { destinations: ["203.0.113.0/24"], excluded: [] };
  const decisions = decide(
    "ipv4",
    [
      { ...same, name: "first" },
      { ...same, name: "second" },
    ],
    { clusterRanges: [] },
  );
  expect(carriedRanges(decisions, ({ name }) => name === "second")).toEqual([]);
});

test("neighbour discovery, link-local and multicast addresses are never carried", () => {
  const decisions = decide("ipv6", [{ destinations: ["::/0"], excluded: [] }], { clusterRanges: [] });
  const ranges = carriedRanges(decisions);
  for (const address of ["ff02::1:ff00:1", "fe80::1", "::1"]) {
    const { value } = parseAddress(address);
    expect(ranges.some(({ first, last }) => first <= value && value <= last)).toBe(false);
  }
});

test("two thousand in-cluster ranges are decided in less than a second", () => {
  const clusterRanges = Array.from(
    { length: 2000 },
    (_, i) => `100.${64 + Math.floor(i / 250)}.${i % 250}.0/24`,
  );
  const start = performance.now();
  decide("ipv4", [{ destinations: ["0.0.0.0/0"], excluded: [] }], { clusterRanges });
  expect(performance.now() - start).toBeLessThan(1000);
});
