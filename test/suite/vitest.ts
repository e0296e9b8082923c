import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import type { Tally } from "./tally.ts";
import { tallyOf } from "./vitest-report.ts";

export interface VitestRun {
  /** Name of the project in vitest.config.ts. */
  readonly project: string;
  readonly filters: readonly string[];
  /** Files that do not run: glob patterns. */
  readonly exclude: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Which part of the files, from 1, of how many. */
  readonly shard: { readonly index: number; readonly count: number };
  /** Stands before each line of the output. */
  readonly label?: string;
}

/**
 * Runs one project of vitest.config.ts with its output on this terminal, and counts its tests.
 *
 * @param scratch a folder for vitest's report; the caller removes it
 * @param signal ends vitest
 */
export async function runVitest(
  run: VitestRun,
  root: string,
  scratch: string,
  signal: AbortSignal,
): Promise<Tally> {
  const { index, count } = run.shard;
  // A folder of its own: a run that is broken off must not be counted by the report of another.
  const report = join(await mkdtemp(join(scratch, `${run.project}-`)), "report.json");
  const output = run.label === undefined ? "inherit" : ([labelling(run.label), "inherit"] as const);
  await execa(
    "vitest",
    [
      "run",
      `--project=${run.project}`,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      `--shard=${index}/${count}`,
      ...run.exclude.map((pattern) => `--exclude=${pattern}`),
      ...run.filters,
    ],
    {
      cwd: root,
      env: run.environment,
      stdin: "inherit",
      stdout: output,
      stderr: output,
      preferLocal: true,
      localDir: root,
      cancelSignal: signal,
      reject: false,
    },
  );
  return tallyOf(await readFile(report, "utf8").catch(() => undefined));
}

function labelling(label: string) {
  return function* (line: unknown) {
    yield `${label} | ${String(line)}`;
  };
}
