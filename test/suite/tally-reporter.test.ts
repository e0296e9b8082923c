import { describe, expect, it } from "vitest";
import { type CountedModule, tallyOf } from "./tally-reporter.ts";

describe("counting a vitest run", () => {
  it("takes the numbers of tests of all files", () => {
    const modules = [module({ passed: 4, failed: 2 }), module({ passed: 3, skipped: 1 })];
    expect(tallyOf(modules, 0)).toEqual({ passed: 7, failed: 2, skipped: 1 });
  });

  it("counts a file that does not load as a failure", () => {
    expect(tallyOf([module({ passed: 7 }), module({}, false)], 0).failed).toBe(1);
  });

  it("counts a file whose hook throws as a failure", () => {
    expect(tallyOf([module({ passed: 7, skipped: 3 }, false)], 0).failed).toBe(1);
  });

  it("does not count a failed test's file a second time", () => {
    expect(tallyOf([module({ passed: 1, failed: 1 })], 0).failed).toBe(1);
  });

  it("fails a run that executed no test", () => {
    expect(tallyOf([], 0).failed).toBe(1);
    expect(tallyOf([module({ skipped: 4 })], 0).failed).toBe(1);
  });

  it("fails a run with an error outside of tests although every test passed", () => {
    expect(tallyOf([module({ passed: 3 })], 1).failed).toBe(1);
  });
});

function module(
  tests: Partial<Record<"passed" | "failed" | "skipped", number>>,
  ok = (tests.failed ?? 0) === 0,
): CountedModule {
  return { ok: () => ok, children: { allTests: (state) => Array.from({ length: tests[state] ?? 0 }) } };
}
