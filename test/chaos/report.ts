import { aligned } from "@egress-nat/tools/system/table";
import { z } from "zod";
import { downtimeQuantile, Expected, isKept, type Verdict, verdicts } from "./expected.ts";
import { growth, Holding } from "./holding.ts";
import { Round, sumOver } from "./round.ts";

/** What a scenario came to, with one selection. */
export const Report = z.object({
  chaos: z.string(),
  /** What was done. */
  summary: z.string(),
  selection: z.enum(["Agent", "Service"]),
  expected: Expected,
  rounds: z.array(Round),
  /** Why rounds went no further, one entry for each: the other scenarios were measured all the same. */
  brokenOff: z.array(z.string()).optional(),
});
export type Report = z.infer<typeof Report>;

/** What one command has measured; `--json` prints it, and docs/slo.md is made of it. */
export const Measurement = z.object({
  commit: z.string(),
  machine: z.string(),
  setup: z.string(),
  reports: z.array(Report).min(1),
  /** Only where the scenarios went on for hours. */
  holdings: z.array(Holding).optional(),
});
export type Measurement = z.infer<typeof Measurement>;

/** What each scenario must keep, and what all of them together. */
export function verdictsOf({
  reports,
  holdings = [],
}: Measurement): (Verdict & { readonly chaos: string })[] {
  return [
    ...reports.flatMap((report) =>
      verdictsOn(report).map((verdict) => ({ chaos: report.chaos, ...verdict })),
    ),
    ...holdings.map((holding) => ({ chaos: "all of it", ...growth(holding) })),
  ];
}

/** Service selection has nothing to keep but to be measured: its figures say what it is. */
export function verdictsOn({ selection, expected, rounds, brokenOff = [] }: Report): Verdict[] {
  const kept = selection === "Agent" && rounds.length > 0 ? verdicts(expected, rounds) : [];
  if (brokenOff.length === 0) return kept;
  const reasons = [...new Set(brokenOff)].join("; ");
  return [...kept, { name: `rounds broken off: ${reasons}`, value: brokenOff.length, atMost: 0 }];
}

export function isAllKept(measurement: Measurement): boolean {
  return verdictsOf(measurement).every(isKept);
}

/** Names of the figures. */
export const HEADER = [
  ...["chaos", "selection", "rounds", "downtime p50", "p99", "max", "surviving", "reset", "broken"],
  ...["of others", "slowest reset", "failed new", "leaked", "longest gap", "longest stall"],
];

/** Figures of reports: counts are sums over their rounds, times are milliseconds. */
export function figuresOf(reports: readonly Report[]): string[][] {
  return reports.filter(({ rounds }) => rounds.length > 0).map(figures);
}

function figures({ chaos, selection, rounds }: Report): string[] {
  const total = sumOver(rounds);
  const longest = (time: (round: Round) => number) => Math.max(...rounds.map(time));
  const resets = rounds.flatMap(({ slowestResetMs = [] }) => slowestResetMs);
  return [
    ...[chaos, selection, rounds.length, downtimeQuantile(rounds, 0.5), downtimeQuantile(rounds, 0.99)],
    longest((round) => round.downtimeMs),
    ...[total((round) => round.surviving), total((round) => round.reset), total((round) => round.broken)],
    total((round) => round.lostOfOthers),
    resets.length === 0 ? "-" : Math.max(...resets),
    `${total((round) => round.failedConnections)} of ${total((round) => round.attempts)}`,
    total((round) => round.leaked),
    ...[longest((round) => round.longestGapMs), longest((round) => round.longestStallMs)],
  ].map(String);
}

/** The report for people. */
export function formatMeasurement(measurement: Measurement): string {
  const { setup, machine, commit, reports } = measurement;
  const lines = verdictsOf(measurement).map((verdict) => {
    const { chaos, name, value, atMost } = verdict;
    return [chaos, name, `${value}`, `at most ${atMost}: ${isKept(verdict) ? "kept" : "MISSED"}`];
  });
  const before = reports.flatMap(({ chaos, selection, rounds }) => {
    const total = sumOver(rounds);
    const [failed, lost] = [total((round) => round.failedBefore), total((round) => round.lostBefore)];
    if (failed + lost === 0) return [];
    return [
      `${chaos}, ${selection}: before anything was done ${failed} new connections failed, and ${lost} flows were lost`,
    ];
  });
  return [
    setup,
    `${machine}; commit ${commit}; times are milliseconds`,
    "",
    ...aligned([HEADER, ...figuresOf(reports)]),
    ...(before.length === 0 ? [] : ["", ...before]),
    ...(lines.length === 0 ? [] : ["", ...aligned(lines)]),
  ].join("\n");
}
