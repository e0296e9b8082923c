import { z } from "zod";
import { atLeastOne, type Tally } from "./tally.ts";

/** The part of vitest's JSON report that is counted here; the format is jest's. */
const VitestReport = z.object({
  success: z.boolean(),
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
  testResults: z.array(
    z.object({ status: z.string(), assertionResults: z.array(z.object({ status: z.string() })) }),
  ),
});

/**
 * Counts the tests of one vitest run.
 *
 * Vitest counts tests only: a file that does not load, a hook that throws and an unhandled error leave its numbers
 * as they are. Each such file counts as one failure here, and so does a run that failed for no reason it names.
 *
 * @param json the text that vitest's json reporter wrote; undefined when it wrote none
 */
export function tallyOf(json: string | undefined): Tally {
  if (json === undefined) return { passed: 0, failed: 1, skipped: 0 };
  const report = VitestReport.parse(JSON.parse(json));
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.every(({ status }) => status !== "failed"),
  ).length;
  const failed = report.numFailedTests + brokenFiles;
  return atLeastOne({
    passed: report.numPassedTests,
    failed: failed === 0 && !report.success ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  });
}
