import { describe, expect, it } from "vitest";
import { tallyOf } from "./vitest-report.ts";

describe("counting a vitest run", () => {
  it("takes the numbers of tests as vitest reports them", () => {
    expect(
      tallyOf(report({ numPassedTests: 7, numFailedTests: 2, numPendingTests: 1, success: false })),
    ).toEqual({
      passed: 7,
      failed: 2,
      skipped: 1,
    });
  });

  it("counts a file that does not load as a failure", () => {
    const testResults = [{ status: "failed", assertionResults: [] }];
    expect(tallyOf(report({ numPassedTests: 7, testResults, success: false })).failed).toBe(1);
  });

  it("does not count a failed test's file a second time", () => {
    const testResults = [
      { status: "failed", assertionResults: [{ status: "passed" }, { status: "failed" }] },
    ];
    expect(tallyOf(report({ numFailedTests: 1, testResults, success: false })).failed).toBe(1);
  });

  it("fails a run that executed no test", () => {
    expect(tallyOf(report({})).failed).toBe(1);
    expect(tallyOf(report({ numPendingTests: 4 })).failed).toBe(1);
  });

  it("fails a run that vitest calls unsuccessful although every test passed", () => {
    expect(tallyOf(report({ numPassedTests: 3, success: false })).failed).toBe(1);
  });

  it("fails a run that left no report", () => {
    expect(tallyOf(undefined)).toEqual({ passed: 0, failed: 1, skipped: 0 });
  });
});

function report(fields: object): string {
  return JSON.stringify({
    success: true,
    numPassedTests: 0,
    numFailedTests: 0,
    numPendingTests: 0,
    numTodoTests: 0,
    testResults: [],
    ...fields,
  });
}
