import { describe, expect, it } from "vitest";
import { type CountedModule, tallyOf } from "./tally-reporter.ts";

describe("counting a vitest run", () => {
  it("takes the numbers of tests of all files, and the names of those that failed", () => {
    const modules = [module({ passed: 4, failed: 2 }), module({ passed: 3, skipped: 1 })];
    const failure = "some.test.ts > a test: expected 1 to be 2";
    expect(tallyOf(modules, [])).toEqual({ passed: 7, failures: [failure, failure], skipped: 1 });
  });

  it("counts a file that does not load as a failure", () => {
    expect(tallyOf([module({ passed: 7 }), module({}, false)], []).failures).toHaveLength(1);
  });

  it("counts a file whose hook throws as a failure", () => {
    expect(tallyOf([module({ passed: 7, skipped: 3 }, false)], []).failures).toHaveLength(1);
  });

  it("does not count a failed test's file a second time", () => {
    expect(tallyOf([module({ passed: 1, failed: 1 })], []).failures).toHaveLength(1);
  });

  it("fails a run that executed no test", () => {
    expect(tallyOf([], []).failures).toHaveLength(1);
    expect(tallyOf([module({ skipped: 4 })], []).failures).toHaveLength(1);
  });

  it("fails a run with an error outside of tests although every test passed", () => {
    expect(tallyOf([module({ passed: 3 })], [{ message: "a rejection\nat a line" }]).failures).toEqual([
      "outside of tests: a rejection",
    ]);
  });
});

function module(
  tests: Partial<Record<"passed" | "failed" | "skipped", number>>,
  ok = (tests.failed ?? 0) === 0,
): CountedModule {
  const result = () => ({ errors: [{ message: "expected 1 to be 2\n\n- 1\n+ 2" }] });
  const test = { fullName: "a test", result };
  return {
    ...{ relativeModuleId: "some.test.ts", ok: () => ok },
    children: { allTests: (state) => Array.from({ length: tests[state] ?? 0 }, () => test) },
  };
}
