/** docs/slo.md, made of what `npm run chaos -- NAME --json` has printed into docs/slo. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { GeneratedFile } from "@egress-nat/crds/generate";
import { markdownTable } from "@egress-nat/tools/generate/markdown";
import { z } from "zod";
import { figure, limitWords, ReportJson } from "../bench/report.ts";
import { isKept } from "./expected.ts";
import { figuresOf, HEADER, Measurement, type Report, verdictsOf, verdictsOn } from "./report.ts";
import { sumOver } from "./round.ts";

const FOLDER = "docs/slo";
const ROOT = join(import.meta.dirname, "../..");

const INTRODUCTION = `# What flows survive

\`npm run generate\` makes this page from the files in ${FOLDER}. \`npm run --silent chaos -- NAME --json\` prints those that are measured in a
cluster, and \`bench\` those that are measured on the machine itself. [testing.md](testing.md#chaos) says what is done and measured. Emulated nodes
are about 15 times slower than real ones, so times on them are too long: [bench failover](#bench-failover) has those of a real machine. Where a
scenario stands twice, its load differs.

Times are milliseconds. Downtime is how long new connections failed in a round, at the client and for the address for which it lasted longest.
With one round p50, p99 and max are that one. Counts are sums over all rounds. Of open flows some survive (they answer at the end), some are reset,
and some are broken (they hang). Lost flows of others had a gateway that came to no harm. Leaked packets left with a client's own address. A load
program cannot tell a gap from a time in which it stood still itself: no figure is more exact than the longest stall.
`;

/** What one command has printed. */
const SloFile = z.union([Measurement, ReportJson]);
type SloFile = z.infer<typeof SloFile>;

/** Nothing where nothing is measured. */
export async function sloDocument(): Promise<readonly GeneratedFile[]> {
  const files = (await readdir(join(ROOT, FOLDER)).catch(() => [])).filter((file) => file.endsWith(".json"));
  if (files.length === 0) return [];
  const measurements = await Promise.all(
    files.toSorted().map(async (file) => {
      const text = await readFile(join(ROOT, FOLDER, file), "utf8");
      return SloFile.parse(JSON.parse(text));
    }),
  );
  return [{ path: "docs/slo.md", text: sloText(measurements) }];
}

/** The text of the document. */
export function sloText(files: readonly SloFile[]): string {
  return [
    INTRODUCTION,
    ...summary(files.filter((file) => "reports" in file)),
    ...files.map((file) => ("bench" in file ? benchSection(file) : section(file))),
  ].join("\n");
}

/** One line for each scenario, however many files tell of it. */
function summary(measurements: readonly Measurement[]): string[] {
  const lines = measurements.flatMap(({ reports }) =>
    reports.map((report) => {
      const missed = verdictsOn(report)
        .filter((verdict) => !isKept(verdict))
        .map(({ name }) => name);
      const outcome = missed.length > 0 ? `**missed**: ${missed.join("; ")}` : "kept";
      return [...briefly(report), report.selection === "Agent" ? outcome : "-"];
    }),
  );
  if (lines.length === 0) return [];
  const header = [
    "chaos",
    "selection",
    "rounds",
    "flows lost",
    "failed new",
    "downtime max",
    "what is to be kept",
  ];
  const byName = lines.toSorted(([a = ""], [b = ""]) => a.localeCompare(b));
  return ["## In short\n", markdownTable([header, ...byName])];
}

function briefly({ chaos, selection, rounds }: Report): string[] {
  const total = sumOver(rounds);
  const [lost, open] = [total((round) => round.reset + round.broken), total((round) => round.surviving)];
  return [
    ...[chaos, selection, `${rounds.length}`, `${lost} of ${lost + open}`],
    `${total((round) => round.failedConnections)} of ${total((round) => round.attempts)}`,
    `${Math.max(0, ...rounds.map((round) => round.downtimeMs))}`,
  ];
}

function benchSection({ bench, setup, commit, machine, series, targets }: ReportJson): string {
  const figures = series.map(({ name, unit, samples, median }) => [
    ...[name, unit, `${samples.length}`],
    ...[median, Math.min(...samples), Math.max(...samples)].map(figure),
  ]);
  const limits = targets.flatMap(({ name, value, limit, isReached }) =>
    limit === undefined ? [] : [[name, limitWords(limit), figure(value), isReached ? "kept" : "**missed**"]],
  );
  return [
    `## bench ${bench}\n`,
    `${setup}. Commit ${commit}, on ${machine}.\n`,
    markdownTable([["what", "unit", "rounds", "median", "least", "most"], ...figures]),
    markdownTable([["what", "limit", "measured", ""], ...limits]),
  ].join("\n");
}

function section(measurement: Measurement): string {
  const { commit, machine, setup, reports } = measurement;
  const names = [...new Set(reports.map(({ chaos }) => chaos))];
  const summaries = names.map((name) => {
    const summary = reports.find(({ chaos }) => chaos === name)?.summary;
    return `- \`${name}\`: ${summary}\n`;
  });
  const verdicts = verdictsOf(measurement).map((verdict) => [
    ...[verdict.chaos, verdict.name, `${verdict.atMost}`, `${verdict.value}`],
    isKept(verdict) ? "kept" : "**missed**",
  ]);
  return [
    `## ${names.join(", ")}\n`,
    `${setup}. Commit ${commit}, on ${machine}.\n`,
    summaries.join(""),
    markdownTable([HEADER, ...figuresOf(reports)]),
    ...(verdicts.length === 0
      ? []
      : [
          "With Agent selection:\n",
          markdownTable([["chaos", "what", "at most", "measured", ""], ...verdicts]),
        ]),
  ].join("\n");
}
