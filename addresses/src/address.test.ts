import { isIP } from "node:net";
import { anyAddress, nearlyAnAddress } from "@egress-nat/test/fuzz/addresses";
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalAddress, formatAddress, isAddress, isMapped, parseAddress } from "./address.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["2001:0DB8:0:0::1", "2001:db8::1"],
  // RFC 5952: the first of the longest runs of zeros, and no run of one.
  ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["10:0:0:0:1:0:0:0", "10::1:0:0:0"],
  ["::", "::"],
  ["::ffff:10.0.0.1", "::ffff:a00:1"],
  ["0:0:0:0:0:FFFF:0a00:0001", "::ffff:a00:1"],
  ["::192.0.2.1", "::c000:201"],
  ["64:ff9b::192.0.2.1", "64:ff9b::c000:201"],
])("%s is spelled %s", (text, canonical) => {
  expect(canonicalAddress(text)).toBe(canonical);
});

test("all spellings of an address are one address, with one spelling", () => {
  fc.assert(
    fc.property(anyAddress, ({ family, value, spellings }) => {
      for (const text of spellings) {
        expect(parseAddress(text)).toEqual({ family, value });
        expect(canonicalAddress(text)).toBe(formatAddress(family, value));
      }
    }),
  );
});

test("an address is what Node takes for one, without a zone", () => {
  fc.assert(
    fc.property(nearlyAnAddress, (text) => {
      expect({ text, taken: isAddress(text) }).toEqual({
        text,
        taken: isIP(text) !== 0 && !text.includes("%"),
      });
    }),
    { numRuns: 2000 },
  );
});

test.each([
  "",
  "10.1",
  "10.0.0.01",
  "0x0a.0.0.1",
  "10.0.0.1 ",
  "10.0.0.1\n",
  "fe80::1%eth0",
  "1::2::3",
  "host",
])("%j is no address", (text) => {
  expect(canonicalAddress(text)).toBeUndefined();
});

test.each([
  ["::ffff:10.0.0.1", true],
  ["::ffff:a00:1", true],
  ["10.0.0.1", false],
  ["::10.0.0.1", false],
  ["::ffff:0:a00:1", false],
  ["64:ff9b::10.0.0.1", false],
])("%s is an IPv4 address in IPv6's spelling: %s", (text, mapped) => {
  const address = parseAddress(text);
  expect(address && isMapped(address)).toBe(mapped);
});
