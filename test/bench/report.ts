import { summarize } from "./samples.ts";

export interface Series {
  readonly name: string;
  readonly unit: "ms" | "MB" | "Mbit/s";
  readonly samples: readonly number[];
}

/** What is to be reached, as a relation of two medians or as a median itself. */
export interface Target {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  readonly reached: "at most" | "at least";
}

export interface Report {
  readonly bench: string;
  /** What was measured where, in one sentence. */
  readonly setup: string;
  readonly series: readonly Series[];
  readonly targets: readonly Target[];
}

export function isReached({ value, limit, reached }: Target): boolean {
  return reached === "at most" ? value <= limit : value >= limit;
}

/** The report for people. */
export function formatReport({ bench, setup, series, targets }: Report): string {
  const width = Math.max(...[...series, ...targets].map(({ name }) => name.length));
  const seriesLines = series.map(({ name, unit, samples }) => {
    const { median, low, high } = summarize(samples);
    const spread = `${figure(low)} to ${figure(high)}`;
    return `  ${name.padEnd(width)}  ${figure(median).padStart(8)} ${unit.padEnd(6)}  (${spread}, ${samples.length} samples)`;
  });
  const targetLines = targets.map((target) => {
    const { name, value, limit, reached } = target;
    const verdict = isReached(target) ? "reached" : "MISSED";
    return `  ${name.padEnd(width)}  ${figure(value).padStart(8)} ${" ".repeat(6)}  (${reached} ${limit}: ${verdict})`;
  });
  return [`${bench}: ${setup}`, ...seriesLines, ...targetLines].join("\n");
}

/** The report for programs: medians and spread beside the samples. */
export function reportJson(report: Report): object {
  return {
    ...report,
    series: report.series.map((series) => ({ ...series, ...summarize(series.samples) })),
    targets: report.targets.map((target) => ({ ...target, isReached: isReached(target) })),
  };
}

function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
