import { z } from "zod";
import { type Samples, summarize } from "./samples.ts";

export interface Series {
  readonly name: string;
  readonly unit: "ms" | "µs" | "MB" | "%" | "Mbit/s" | "per s" | "sockets";
  readonly samples: Samples;
}

/** What is to be reached, as a relation of two medians or as a median itself. */
export interface Target {
  readonly name: string;
  readonly value: number;
  /** undefined: it is told, and has to reach nothing. */
  readonly limit: Limit | undefined;
}

export type Limit = { readonly atMost: number } | { readonly atLeast: number };

/** What was measured and what of it has to reach what. */
export interface Findings {
  readonly series: readonly Series[];
  readonly targets: readonly Target[];
}

/** All of them, in order. */
export function joined(findings: readonly Findings[]): Findings {
  return {
    series: findings.flatMap(({ series }) => series),
    targets: findings.flatMap(({ targets }) => targets),
  };
}

export interface Report extends Findings {
  readonly bench: string;
  /** What was measured where, in one sentence. */
  readonly setup: string;
}

export function milliseconds(name: string, samples: Samples): Series {
  return { name, unit: "ms", samples };
}

/** A series whose own median has to reach something. */
export function medianOf({ name, samples }: Series, limit: Limit): Target {
  return { name, value: summarize(samples).median, limit };
}

/** A series whose largest sample has to reach something. */
export function worstOf({ name, samples }: Series, limit: Limit): Target {
  return { name: `${name}: the worst`, value: Math.max(...samples), limit };
}

/** A series whose median has to stand in a relation to that of another. */
export function ratioOf(name: string, series: Series, reference: Series, limit?: Limit): Target {
  const value = summarize(series.samples).median / summarize(reference.samples).median;
  return { name, value, limit };
}

/**
 * As {@link ratioOf}, for samples taken in turn: the median of the ratios of each two that were taken one after the
 * other. What slows the machine down for a while is in both.
 */
export function ratioOfPairs(name: string, series: Series, reference: Series, limit?: Limit): Target {
  const ratios = series.samples.map((sample, index) => sample / (reference.samples[index] ?? Number.NaN));
  return { name, value: summarize(ratios).median, limit };
}

export function isReached({ value, limit }: Target): boolean {
  if (limit === undefined) return true;
  return "atMost" in limit ? value <= limit.atMost : value >= limit.atLeast;
}

/** The report for people. */
export function formatReport({ bench, setup, series, targets }: Report): string {
  const width = Math.max(...[...series, ...targets].map(({ name }) => name.length));
  const line = (name: string, value: number, unit: string, note: string) =>
    `  ${name.padEnd(width)}  ${figure(value).padStart(8)} ${unit.padEnd(7)}  (${note})`;
  const seriesLines = series.map(({ name, unit, samples }) => {
    const { median, low, high } = summarize(samples);
    return line(name, median, unit, `${figure(low)} to ${figure(high)}, ${samples.length} samples`);
  });
  const targetLines = targets.map((target) => {
    const { name, value, limit } = target;
    if (limit === undefined) return line(name, value, "", "no limit");
    return line(name, value, "", `${limitWords(limit)}: ${isReached(target) ? "reached" : "MISSED"}`);
  });
  return [`${bench}: ${setup}`, ...seriesLines, ...targetLines].join("\n");
}

/** Where figures come from: the commit that was checked out, and the machine. */
export const Origin = z.object({ commit: z.string(), machine: z.string() });
export type Origin = z.infer<typeof Origin>;

/** What {@link reportJson} makes, as far as documents need it. */
export const ReportJson = Origin.extend({
  bench: z.string(),
  setup: z.string(),
  series: z.array(
    z.object({ name: z.string(), unit: z.string(), samples: z.array(z.number()), median: z.number() }),
  ),
  targets: z.array(
    z.object({
      name: z.string(),
      value: z.number(),
      limit: z.union([z.object({ atMost: z.number() }), z.object({ atLeast: z.number() })]).optional(),
      isReached: z.boolean(),
    }),
  ),
});
export type ReportJson = z.infer<typeof ReportJson>;

/** The report for programs: medians and spread beside the samples. */
export function reportJson(report: Report, origin: Origin): object {
  return {
    ...origin,
    ...report,
    series: report.series.map((series) => ({ ...series, ...summarize(series.samples) })),
    targets: report.targets.map((target) => ({ ...target, isReached: isReached(target) })),
  };
}

export function limitWords(limit: Limit): string {
  return "atMost" in limit ? `at most ${limit.atMost}` : `at least ${limit.atLeast}`;
}

export function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
