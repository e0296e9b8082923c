import { aligned } from "@egress-nat/tools/system/table";
import prettyMilliseconds from "pretty-ms";
import { sum, type Tally } from "./tally.ts";

/** One stage after it ran. */
export interface StageResult {
  readonly name: string;
  readonly tally: Tally;
  readonly elapsedMs: number;
}

/** What has failed, the table of all stages and, as its last line, the figures of the whole run. */
export function summary(results: readonly StageResult[]): string {
  const rows = results.map(({ name, tally, elapsedMs }) => [
    tally.failures.length === 0 ? "ok" : "FAILED",
    name,
    `${tally.passed} passed`,
    `${tally.failures.length} failed`,
    tally.skipped === 0 ? "" : `${tally.skipped} skipped`,
    prettyMilliseconds(elapsedMs),
  ]);
  const total = sum(results.map(({ tally }) => tally));
  const failures = results.flatMap(({ name, tally }) =>
    tally.failures.map((failure) => `${name} failed: ${failure}`),
  );
  return [
    ...(failures.length > 0 ? [...failures, ""] : []),
    ...aligned(rows),
    "",
    `${total.passed} passed, ${failures.length} failed`,
  ].join("\n");
}
