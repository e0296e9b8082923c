import { expect, test } from "vitest";
import {
  formatReport,
  isReached,
  medianOf,
  milliseconds,
  type Report,
  ratioOf,
  ratioOfPairs,
  reportJson,
} from "./report.ts";

const ours = milliseconds("ours", [30, 10, 20]);
const theirs = milliseconds("theirs", [4, 5, 6]);
const report: Report = {
  bench: "example",
  setup: "on paper",
  series: [ours, theirs],
  targets: [ratioOf("ours / theirs", ours, theirs, { atMost: 4 }), medianOf(ours, { atMost: 19.5 })],
};

test("people read medians, their spread, and what was missed", () => {
  expect(formatReport(report).split("\n")).toEqual([
    "example: on paper",
    "  ours               20.0 ms       (12.0 to 28.0, 3 samples)",
    "  theirs             5.00 ms       (4.20 to 5.80, 3 samples)",
    "  ours / theirs      4.00          (at most 4: reached)",
    "  ours               20.0          (at most 19.5: MISSED)",
  ]);
});

test("programs read all samples, too", () => {
  expect(
    JSON.parse(JSON.stringify(reportJson(report, { commit: "0123456789ab", machine: "2 x Example" }))),
  ).toMatchObject({
    series: [{ samples: [30, 10, 20], median: 20 }, { name: "theirs" }],
    targets: [{ value: 4, isReached: true }, { isReached: false }],
  });
});

test("what slows both of a pair down leaves their ratio as it is", () => {
  const slowed = milliseconds("slowed", [10, 100, 10, 10, 100]);
  const reference = milliseconds("reference", [5, 50, 5, 50, 50]);
  expect(ratioOfPairs("slowed / reference", slowed, reference, { atMost: 1 }).value).toBe(2);
});

test("a lower limit is reached from above", () => {
  expect([0.94, 0.95, 1.2].map((value) => isReached({ name: "", value, limit: { atLeast: 0.95 } }))).toEqual([
    false,
    true,
    true,
  ]);
});

test("a relation without a limit is told, and nothing has to be reached", () => {
  const told = ratioOf("ours / theirs", ours, theirs);
  expect(isReached(told)).toBe(true);
  expect(formatReport({ ...report, targets: [told] })).toMatch(/ours \/ theirs {6}4\.00 {10}\(no limit\)$/);
});
