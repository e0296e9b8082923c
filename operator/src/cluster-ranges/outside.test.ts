import { expect, test } from "vitest";
import { outsideTest } from "./outside.ts";

test.each([
  ["10.1.2.3", false],
  ["11.0.0.1", true],
  ["fd00:244::7", false],
  ["FD00:0244:0::7", false],
  ["2001:db8::1", true],
  // An IPv6 address, whatever it stands for: no IPv4 network holds it.
  ["::ffff:10.1.2.3", true],
])("%s is outside of 10.0.0.0/8 and fd00:244::/64: %s", (address, outside) => {
  expect(outsideTest(["10.0.0.0/8", "fd00:244::/64"])(address)).toBe(outside);
});
