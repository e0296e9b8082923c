import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aggregate, containsPrefix, formatCidr, type Prefix, parseCidr, rangeOf } from "./prefix.ts";
import { mergeRanges } from "./range.ts";

const parsed = (cidrs: readonly string[]) => cidrs.map((cidr) => parseCidr(cidr) as Prefix);
const aggregated = (cidrs: readonly string[]) => aggregate(parsed(cidrs)).map(formatCidr);

/** So few that they nest, touch and repeat. */
const prefix = fc
  .tuple(fc.nat(255), fc.integer({ min: 24, max: 32 }))
  .map(([host, length]) => `192.0.2.${host}/${length}`);

test.each([
  ["192.0.2.77/24", "192.0.2.0/24"],
  ["2001:DB8::1/32", "2001:db8::/32"],
  ["198.51.100.1", "198.51.100.1/32"],
  ["::ffff:10.1.2.3/120", "::ffff:a01:200/120"],
  ["0.0.0.0/0", "0.0.0.0/0"],
])("%s is the network %s", (text, cidr) => {
  expect(parsed([text]).map(formatCidr)).toEqual([cidr]);
});

test.each(["10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0/8/8", "fd00::/129", "1.2.3.4/", "/8", ""])(
  "%j is no network",
  (text) => {
    expect(parseCidr(text)).toBeUndefined();
  },
);

test("an address is in networks of its own family only", () => {
  const holds = (cidrs: readonly string[]) => {
    const [outer, inner] = parsed(cidrs) as [Prefix, Prefix];
    return containsPrefix(outer, inner);
  };
  expect(holds(["0.0.0.0/0", "2001:db8::1"])).toBe(false);
  expect(holds(["::/0", "10.1.2.3"])).toBe(false);
  expect(holds(["10.0.0.0/8", "10.1.2.3"])).toBe(true);
  expect(holds(["10.0.0.0/8", "11.0.0.0"])).toBe(false);
});

describe("aggregated", () => {
  test("neighbours become one network, and stay apart where they are none", () => {
    expect(aggregated(["10.0.3.0/24", "10.0.2.0/24", "10.0.0.0/23", "10.0.5.0/24", "10.0.6.0/24"])).toEqual([
      "10.0.0.0/22",
      "10.0.5.0/24",
      "10.0.6.0/24",
    ]);
    expect(aggregated(["::/1", "0.0.0.0/1", "8000::/1", "128.0.0.0/1"])).toEqual(["0.0.0.0/0", "::/0"]);
    expect(aggregated(["192.0.2.4", "192.0.2.5", "192.0.2.5"])).toEqual(["192.0.2.4/31"]);
  });

  test("networks hold the same addresses as before, and are as few as can be", () => {
    const rangesOf = (cidrs: readonly string[]) => mergeRanges(parsed(cidrs).map(rangeOf));
    fc.assert(
      fc.property(fc.array(prefix, { maxLength: 12 }), (cidrs) => {
        const result = aggregated(cidrs);
        expect(rangesOf(result)).toEqual(rangesOf(cidrs));
        for (const one of result) {
          expect(aggregated(result.filter((cidr) => cidr !== one))).toHaveLength(result.length - 1);
        }
      }),
    );
  });
});
