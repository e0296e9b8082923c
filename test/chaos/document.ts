/** docs/slo.md, made of what `npm run chaos -- NAME --json` has printed into docs/slo. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { GeneratedFile } from "@egress-nat/crds/generate";
import { markdownTable } from "@egress-nat/tools/generate/markdown";
import { ToolError } from "@egress-nat/tools/system/tool-error";
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
scenario stands twice, its load differs, its commit, or who picks gateways. With 10 new connections per second emulated nodes have no processor
time left, so times are longer than with 2. The machine that emulates them is not always as fast either: it was slow while times
with 1 were measured, so most are longer than with 2. What is to be kept is a target of Agent selection ([which](testing.md#chaos)); Service selection has none.

Gateways are picked for each flow (\`sessionAffinity: None\`, with \`Service\` \`fouSourcePortAuto: true\` as well), so that some flows of a client have
the gateway that comes to harm, and others have not. With \`Service\` and that field the node forgets the way of a flow that is idle for half a minute, and
kube-proxy picks again: of three gateways two are other ones, and the flow is lost. So two thirds of the idle half are lost in each scenario, whatever is done.
Without the field that is not so.

Times are milliseconds. Downtime is how long new connections failed in a round, at the client and for the address for which it lasted longest.
With one round p50, p99 and max are that one. Counts are sums over all rounds. Of open flows some survive (they answer at the end), some are reset,
and some are broken (they hang). Lost flows of others had a gateway that came to no harm. Leaked packets left with a client's own address. A load
program cannot tell a gap from a time in which it stood still itself: no figure is more exact than the longest stall. A round is broken off where
it could not be measured, or where what was done could not be taken back after it was. On the slow machine nodes did not start pods in time.
Before commit c6b80c2 a client that its node could not start counted as refused.
`;

/** What one command has printed. */
const SloFile = z.union([Measurement, ReportJson]);

/** What is measured, by the name of its file, without the number of a run. */
type Slo = ReadonlyMap<string, z.infer<typeof SloFile>>;

/** Nothing where nothing is measured. */
export async function sloDocument(): Promise<readonly GeneratedFile[]> {
  const files = (await readdir(join(ROOT, FOLDER)).catch(() => [])).filter((file) => file.endsWith(".json"));
  if (files.length === 0) return [];
  const printed = await Promise.all(
    files.toSorted().map(async (file) => {
      const text = await readFile(join(ROOT, FOLDER, file), "utf8");
      return [file.replace(/(-\d+)?\.json$/, ""), SloFile.parse(JSON.parse(text))] as const;
    }),
  );
  return [{ path: "docs/slo.md", text: sloText(runsTogether(printed)) }];
}

/**
 * Runs of one measurement (agent-1.json, agent-2.json) are rounds of one.
 *
 * @throws ToolError `slo` where they are not of one commit, machine and setup
 */
export function runsTogether(printed: readonly (readonly [name: string, z.infer<typeof SloFile>])[]): Slo {
  const together = new Map<string, z.infer<typeof SloFile>>();
  for (const [name, run] of printed) {
    const before = together.get(name);
    together.set(name, before === undefined ? run : joined(name, before, run));
  }
  return together;
}

function joined(name: string, ...runs: readonly z.infer<typeof SloFile>[]): Measurement {
  const measurements = runs.flatMap((run) => ("reports" in run ? [run] : []));
  const origins = new Set(measurements.map(({ commit, machine, setup }) => `${commit} ${machine} ${setup}`));
  const [first] = measurements;
  if (first === undefined || measurements.length < runs.length || origins.size > 1) {
    throw new ToolError("slo", `runs of ${name} differ in commit, machine or setup: measure them again`);
  }
  const ofOne = Map.groupBy(
    measurements.flatMap(({ reports }) => reports),
    ({ chaos, selection }) => `${chaos} ${selection}`,
  );
  const reports = Array.from(ofOne.values(), (each) => {
    const brokenOff = each.flatMap((report) => report.brokenOff ?? []);
    const rounds = each.flatMap((report) => report.rounds);
    return { ...(each[0] as Report), rounds, ...(brokenOff.length > 0 && { brokenOff }) };
  });
  return { ...first, reports };
}

/** The text of the document. */
export function sloText(slo: Slo): string {
  const measurements = [...slo].flatMap(([name, each]) => ("reports" in each ? [[name, each] as const] : []));
  return [
    INTRODUCTION,
    ...summary(measurements),
    ...Array.from(slo, ([name, each]) => ("bench" in each ? benchSection(each) : section(name, each))),
  ].join("\n");
}

/** One line for each scenario of each measurement. */
function summary(measurements: readonly (readonly [name: string, Measurement])[]): string[] {
  const lines = measurements.flatMap(([name, { reports }]) =>
    reports.map((report) => {
      const missed = verdictsOn(report)
        .filter((verdict) => !isKept(verdict))
        .map(({ name }) => name);
      const outcome = missed.length > 0 ? `**missed**: ${missed.join("; ")}` : "kept";
      return [...briefly(report), report.selection === "Agent" ? outcome : "-", `[${name}](#${name})`];
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
    "measured in",
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

function section(title: string, measurement: Measurement): string {
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
    `## ${title}\n`,
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
