import { formatRange, type Range, rangeOf } from "@egress-nat/addresses";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { aroundBoundaries, holds, type Situation, situation } from "../testing/arbitrary.ts";
import { isNarrow, PRIVATE_RANGES, parseAddress, parseCidr } from "./cidr.ts";
import { carriedRanges, decide, NEVER_CARRIED, translatedRanges } from "./coverage.ts";

vi.setConfig({ testTimeout: 60_000 });

/** The decision for one address, rule by rule and with no cleverness. */
function carrierOf(address: bigint, { carriers, clusterRanges, mainRoutes }: Situation): string | undefined {
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

describe("for all destinations, exclusions and ranges", () => {
  test("each address is carried by whom the rules say, and by nobody else", () => {
    fc.assert(
      fc.property(situation, (given) => {
        const decisions = decide("ipv4", given.carriers, given);
        const ranges = given.carriers.map(
          ({ name }) => [name, carriedRanges(decisions, (carrier) => carrier.name === name)] as const,
        );
        const boundaries = [
          ...given.carriers.flatMap(({ destinations, excluded }) => [...destinations, ...excluded]),
          ...[...given.clusterRanges, ...given.mainRoutes, ...PRIVATE_RANGES, ...NEVER_CARRIED],
        ];
        for (const address of aroundBoundaries(boundaries)) {
          const carriers = ranges
            .filter(([, list]) => list.some(({ first, last }) => first <= address && address <= last))
            .map(([name]) => name);
          const expected = carrierOf(address, given);
          expect(carriers).toEqual(expected === undefined ? [] : [expected]);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("ranges are disjoint and in order", () => {
    fc.assert(
      fc.property(situation, (given) => {
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

test("IPv4 addresses in the spelling of IPv6 are nobody's, and a translator's names of a range are as many", () => {
  const decisions = decide("ipv6", [{ destinations: ["::/0"], excluded: [] }], { clusterRanges: [] });
  const among = (ranges: readonly Range[], address: string) => {
    const { value } = parseAddress(address);
    return ranges.some(({ first, last }) => first <= value && value <= last);
  };
  for (const address of ["::192.0.2.1", "::ffff:192.0.2.1"]) {
    expect(among(carriedRanges(decisions), address)).toBe(false);
  }
  const translated = translatedRanges([rangeOf(parseCidr("192.0.2.0/24"))]);
  expect(translated.map((range) => formatRange("ipv6", range))).toEqual(["64:ff9b::c000:200/120"]);
});

test("two thousand in-cluster ranges cost two thousand decisions, not their square", () => {
  const carriers = [{ destinations: ["0.0.0.0/0"], excluded: [] }];
  const clusterRanges = Array.from(
    { length: 2000 },
    (_, i) => `100.${64 + Math.floor(i / 250)}.${i % 250}.0/24`,
  );
  const start = performance.now();
  expect(decide("ipv4", carriers, { clusterRanges })).toHaveLength(2000 + 1 + 3 + 6);
  expect(performance.now() - start).toBeLessThan(5000);
});
