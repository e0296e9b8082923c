import { aligned } from "@egress-nat/tools/system/table";
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
    duration(elapsedMs),
  ]);
  const total = sum(results.map(({ tally }) => tally));
  return [...aligned(rows), "", `${total.passed} passed, ${total.failed} failed`].join("\n");
}

/** A duration as people read it: "840 ms", "12.3 s", "4 min 07 s". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}
