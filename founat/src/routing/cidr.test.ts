import { describe, expect, test } from "vitest";
import { canonicalAddress, isNarrow, parseAddress, parseCidr } from "./cidr.ts";
import { normalizeCidrs } from "./nesting.ts";

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

test.each(["10.1", "fe80::1%eth0", "host"])("%j is refused by name where an address is needed", (text) => {
  const refusal = { code: "invalid-config", message: `${JSON.stringify(text)} is not an IP address` };
  expect(() => canonicalAddress(text)).toThrow(expect.objectContaining(refusal));
  expect(() => parseAddress(text)).toThrow(expect.objectContaining(refusal));
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

test("all spellings of an address are one address", () => {
  expect(parseAddress("2001:0db8:0:0::1")).toEqual(parseAddress("2001:db8::1"));
  expect(parseAddress("::ffff:192.0.2.1")).toEqual(parseAddress("::ffff:c000:201"));
  expect(parseAddress("::192.0.2.1")).toEqual(parseAddress("::c000:201"));
  expect(parseCidr("0.0.0.0/0")).toEqual({ family: "ipv4", first: 0n, length: 0 });
});
