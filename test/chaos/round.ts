/** What one round of a scenario comes to: figures from the reports of all clients. */

import { z } from "zod";
import type { Connections, Flow, LoadReport } from "./load-report.ts";

/** New connections work again when none has failed for so long. */
const CALM_MS = 3_000;

export const Round = z.object({
  /** How long new connections did not work: the longest such time that any client had towards any target. 0: none failed. */
  downtimeMs: z.number(),
  attempts: z.int(),
  failedConnections: z.int(),
  /** How many failed with which error. */
  errors: z.record(z.string(), z.int()),
  /** Before anything was done: what the machine's load, and not the scenario, does to new connections and to flows. */
  failedBefore: z.int(),
  lostBefore: z.int(),
  surviving: z.int(),
  reset: z.int(),
  broken: z.int(),
  /** Of all three, how many had the gateway that the scenario took. */
  ofVictim: z.int(),
  /** Of those reset or broken, how many had another gateway than the one that the scenario took. */
  lostOfOthers: z.int(),
  /** From the mark to the last reset; absent if there was none. */
  slowestResetMs: z.number().optional(),
  /** The longest time that an answer to a surviving flow took. */
  longestGapMs: z.number(),
  /** The longest time that a load program itself stood still: figures are no more exact than this. */
  longestStallMs: z.number(),
  /** Packets with a client's own address that reached the internet. */
  leaked: z.int(),
  /** What else the scenario has counted, by its name: of each none may be. Absent if there is nothing. */
  counts: z.record(z.string(), z.object({ count: z.int(), of: z.int() })).optional(),
});
export type Round = z.infer<typeof Round>;

/** @returns the sum over all rounds of what each comes to */
export function sumOver(rounds: readonly Round[]): (figure: (round: Round) => number) => number {
  return (figure) => rounds.reduce((sum, round) => sum + figure(round), 0);
}

/**
 * @param reports one of each client
 * @param victim addresses of the gateway that the scenario takes
 * @param leaked packets with a client's own address that reached the internet
 */
export function roundOf(reports: readonly LoadReport[], victim: readonly string[], leaked: number): Round {
  const flows = reports.flatMap((report) =>
    report.flows.map((flow) => ({ ...flow, lostMs: lostMs(flow, report) })),
  );
  const during = flows.filter((flow) => (flow.lostMs ?? 0) >= 0);
  const ended = (end: Flow["end"]) => during.filter((flow) => flow.end === end);
  const [surviving, reset, broken] = [ended("survived"), ended("reset"), ended("broken")];
  const connections = reports.flatMap((report) => report.connections.map((each) => sinceMark(each, report)));
  const failures = connections.flatMap((each) => each.failures);
  const successes = connections.flatMap((each) => each.successesMs);
  const allFailures = reports.flatMap((report) => report.connections.flatMap((each) => each.failures));
  return {
    downtimeMs: largest(connections.flatMap(outages)),
    attempts: successes.length + failures.length,
    failedConnections: failures.length,
    errors: counts(failures.map(({ error }) => error)),
    failedBefore: allFailures.length - failures.length,
    lostBefore: flows.length - during.length,
    surviving: surviving.length,
    reset: reset.length,
    broken: broken.length,
    ofVictim: during.filter(({ gateway }) => victim.includes(gateway)).length,
    lostOfOthers: [...reset, ...broken].filter(({ gateway }) => !victim.includes(gateway)).length,
    ...(reset.length > 0 && { slowestResetMs: largest(reset.map((flow) => flow.lostMs ?? 0)) }),
    longestGapMs: largest(surviving.map((flow) => flow.longestGapMs)),
    longestStallMs: largest(reports.map((report) => report.longestStallMs)),
    leaked,
  };
}

/** Since the mark; negative before it, undefined of a flow that survived. */
function lostMs({ endedAtMs }: Flow, { markedAtMs }: LoadReport): number | undefined {
  return endedAtMs === undefined ? undefined : endedAtMs - markedAtMs;
}

interface Since {
  readonly successesMs: readonly number[];
  readonly failures: readonly { readonly atMs: number; readonly error: string }[];
  readonly endMs: number;
}

/** What began after the mark, and what was on its way then and failed, in milliseconds since the mark. */
function sinceMark({ successesMs, failures }: Connections, { markedAtMs, endedAtMs }: LoadReport): Since {
  return {
    successesMs: successesMs.map((atMs) => atMs - markedAtMs).filter((atMs) => atMs >= 0),
    failures: failures
      .filter(({ failedAtMs }) => failedAtMs >= markedAtMs)
      .map(({ atMs, error }) => ({ atMs: Math.max(0, atMs - markedAtMs), error })),
    endMs: endedAtMs - markedAtMs,
  };
}

/**
 * The times in which new connections did not work, in milliseconds each: from the begin of the first that failed to that
 * of the first good one after which none fails for {@link CALM_MS}, else to the end.
 */
function outages({ successesMs, failures, endMs }: Since): number[] {
  const successes = successesMs.toSorted((a, b) => a - b);
  const found: { fromMs: number; toMs: number }[] = [];
  for (const { atMs } of failures.toSorted((a, b) => a.atMs - b.atMs)) {
    const toMs = successes.find((success) => success > atMs) ?? endMs;
    const last = found.at(-1);
    if (last !== undefined && atMs < last.toMs + CALM_MS) last.toMs = toMs;
    else found.push({ fromMs: atMs, toMs });
  }
  return found.map(({ fromMs, toMs }) => toMs - fromMs);
}

/** 0 of none. */
function largest(numbers: readonly number[]): number {
  return Math.round(Math.max(0, ...numbers));
}

function counts(words: readonly string[]): Record<string, number> {
  const result: Record<string, number> = {};
  for (const word of words) result[word] = (result[word] ?? 0) + 1;
  return result;
}
