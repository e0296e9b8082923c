import { join } from "node:path";
import { execa } from "execa";
import { failure, type Tally } from "./tally.ts";

const TALLY_REPORTER = join(import.meta.dirname, "tally-reporter.ts");

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
 * Runs one project of vitest.config.ts with its output on this terminal, and counts its tests. It has a process of its
 * own, because Vitest ends its process at once when it is interrupted.
 *
 * @param signal ends vitest
 */
export async function runVitest(run: VitestRun, root: string, signal: AbortSignal): Promise<Tally> {
  const { index, count } = run.shard;
  const output = run.label === undefined ? "inherit" : ([labelling(run.label), "inherit"] as const);
  const { ipcOutput } = await execa(
    "vitest",
    [
      "run",
      `--project=${run.project}`,
      "--reporter=default",
      `--reporter=${TALLY_REPORTER}`,
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
      ipc: true,
      preferLocal: true,
      localDir: root,
      cancelSignal: signal,
      reject: false,
    },
  );
  const [tally = failure("vitest has ended before its tests")] = ipcOutput as unknown as readonly Tally[];
  return tally;
}

function labelling(label: string) {
  return function* (line: unknown) {
    yield `${label} | ${String(line)}`;
  };
}
