import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { prefixes } from "../testing/arbitrary.ts";
import { aggregateCidrs, containsAddress, isNarrow, lastAddress, parseAddress, parseCidr } from "./cidr.ts";
import { normalizeCidrs } from "./nesting.ts";
import { mergeRanges } from "./ranges.ts";

test("host bits are masked, duplicates and covered entries merged, families kept apart", () => {
  expect(
    normalizeCidrs([
      "192.0.2.77/24",
      "192.0.2.0/24",
      "192.0.2.128/25",
      "2001:DB8::1/32",
      "2001:db8:1::/48",
      "198.51.100.1",
    ]),
  ).toEqual(["192.0.2.0/24", "198.51.100.1/32", "2001:db8::/32"]);
});

describe("aggregated", () => {
  test("neighbours become one network, and stay apart where they are none", () => {
    expect(
      aggregateCidrs(["10.0.3.0/24", "10.0.2.0/24", "10.0.0.0/23", "10.0.5.0/24", "10.0.6.0/24"]),
    ).toEqual(["10.0.0.0/22", "10.0.5.0/24", "10.0.6.0/24"]);
    expect(aggregateCidrs(["::/1", "0.0.0.0/1", "8000::/1", "128.0.0.0/1"])).toEqual(["0.0.0.0/0", "::/0"]);
    expect(aggregateCidrs(["192.0.2.4", "192.0.2.5", "192.0.2.5"])).toEqual(["192.0.2.4/31"]);
  });

  test("networks hold the same addresses as before, and are as few as can be", () => {
    const rangesOf = (cidrs: readonly string[]) =>
      mergeRanges(cidrs.map(parseCidr).map((prefix) => ({ first: prefix.first, last: lastAddress(prefix) })));
    fc.assert(
      fc.property(prefixes(12), (cidrs) => {
        const aggregated = aggregateCidrs(cidrs);
        expect(rangesOf(aggregated)).toEqual(rangesOf(cidrs));
        for (const one of aggregated) {
          expect(aggregateCidrs(aggregated.filter((cidr) => cidr !== one))).toHaveLength(
            aggregated.length - 1,
          );
        }
      }),
    );
  });
});

test.each([
  "10.1/8",
  "010.0.0.1/8",
  "10.0.0.0/33",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "fe80::1%eth0",
  "fd00::/129",
  "",
  "host",
  "1.2.3.4/",
])("%j is refused by name", (text) => {
  expect(() => normalizeCidrs([text])).toThrow(JSON.stringify(text.split("/")[0]).slice(0, -1));
});

describe("narrow", () => {
  test.each([
    ["10.0.0.0/8", true],
    ["192.168.10.0/24", true],
    ["fd12::/16", true],
    ["100.64.1.0/24", true],
    ["0.0.0.0/0", false],
    ["8.8.8.0/24", false],
    ["10.0.0.0/7", false],
    ["::/0", false],
  ])("%s: %s", (cidr, narrow) => {
    expect(isNarrow(cidr, ["100.64.0.0/16"])).toBe(narrow);
  });
});

test("an address is looked up in networks of its own family only", () => {
  expect(containsAddress(["0.0.0.0/0"], "2001:db8::1")).toBe(false);
  expect(containsAddress(["::/0", "10.0.0.0/8"], "10.1.2.3")).toBe(true);
  expect(containsAddress(["10.0.0.0/8"], "11.0.0.0")).toBe(false);
});

test("all spellings of an address are one address", () => {
  expect(parseAddress("2001:0db8:0:0::1")).toEqual(parseAddress("2001:db8::1"));
  expect(parseAddress("::ffff:192.0.2.1")).toEqual(parseAddress("::ffff:c000:201"));
  expect(parseAddress("::192.0.2.1")).toEqual(parseAddress("::c000:201"));
  expect(parseCidr("0.0.0.0/0")).toEqual({ family: "ipv4", first: 0n, length: 0 });
});
