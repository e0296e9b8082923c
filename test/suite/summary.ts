import { aligned } from "@egress-nat/tools/system/table";
import prettyMilliseconds from "pretty-ms";
import { sum, type Tally } from "./tally.ts";

/** One stage after it ran. */
export interface StageResult {
  readonly name: string;
  readonly tally: Tally;
  readonly elapsedMs: number;
}

/** The table of all stages and, as its last line, the figures of the whole run. */
export function summary(results: readonly StageResult[]): string {
  const rows = results.map(({ name, tally, elapsedMs }) => [
    tally.failed === 0 ? "ok" : "FAILED",
    name,
    `${tally.passed} passed`,
    `${tally.failed} failed`,
    tally.skipped === 0 ? "" : `${tally.skipped} skipped`,
    prettyMilliseconds(elapsedMs),
  ]);
  const total = sum(results.map(({ tally }) => tally));
  return [...aligned(rows), "", `${total.passed} passed, ${total.failed} failed`].join("\n");
}
