import { describe, expect, it } from "vitest";
import { summary } from "./summary.ts";

describe("the summary of a run", () => {
  it("says what has failed, lists the stages, and ends with the figures of all of them", () => {
    const text = summary([
      { name: "unit", tally: { passed: 120, failures: [], skipped: 0 }, elapsedMs: 8_400 },
      {
        name: "datapath",
        tally: { passed: 9, failures: ["a.test.ts > b > c: expected 1 to be 2"], skipped: 2 },
        elapsedMs: 97_000,
      },
    ]);
    expect(text).toBe(
      [
        "datapath failed: a.test.ts > b > c: expected 1 to be 2",
        "",
        "ok      unit      120 passed  0 failed             8.4s",
        "FAILED  datapath  9 passed    1 failed  2 skipped  1m 37s",
        "",
        "129 passed, 1 failed",
      ].join("\n"),
    );
  });
});
