import { expect, test } from "vitest";
import { afterRequest, NEW_TARGET, type Target, wayOf } from "./target.ts";

/** What becomes of an address after so many requests: `+` was answered, `-` was not. */
function after(requests: string): Target {
  return [...requests].reduce((target, each) => afterRequest(target, each === "+"), NEW_TARGET);
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
  expect(after(requests).isSilent).toBe(expected);
});

test.each([
  [[], undefined],
  [[""], undefined],
  [["+"], "works"],
  [["---", "+"], "works"],
  [["+-"], undefined],
  [["---"], "silent"],
  [["---", "+--"], undefined],
  [["---+"], undefined],
  [["---", ""], undefined],
])("a family whose addresses were asked %j says: %s", (requests, expected) => {
  expect(wayOf(requests.map(after))).toBe(expected);
});
