import { expect, test } from "vitest";
import { afterRequest, NEW_TARGET } from "./target.ts";

/** What becomes of an address after so many requests: `+` was answered, `-` was not. */
function silentAfter(requests: string): boolean {
  return [...requests].reduce((target, each) => afterRequest(target, each === "+"), NEW_TARGET).isSilent;
}

test.each([
  ["", false],
  ["--", false],
  ["---", true],
  ["--+--", false],
  ["---++", true],
  ["---+++", false],
  ["---++-++", true],
  ["---+++--", false],
])("after %j it is silent: %s", (requests, expected) => {
  expect(silentAfter(requests)).toBe(expected);
});
