import { execa } from "execa";
import { Listr, PRESET_TIMER } from "listr2";
import type { StageContext } from "./stage.ts";
import type { Tally } from "./tally.ts";

/** One command that passes or fails as a whole. */
export interface Check {
  readonly title: string;
  readonly command: readonly [file: string, ...args: string[]];
}

/** The lowest priority (nice(1)): checks have no deadlines, what runs beside them has. */
const NICENESS = "19";

/**
 * Runs checks side by side, shows the output of those that failed, and counts them.
 *
 * @param context where they run, what ends them, and whether others write to the terminal meanwhile
 */
export async function runChecks(
  checks: readonly Check[],
  { root, signal, amongOthers }: Pick<StageContext, "root" | "signal" | "amongOthers">,
): Promise<Tally> {
  const complaints: string[] = [];
  const failures: string[] = [];
  const tasks = new Listr(
    checks.map(({ title, command }) => ({
      title,
      task: async () => {
        const result = await execa("nice", ["-n", NICENESS, ...command], {
          cwd: root,
          all: true,
          cancelSignal: signal,
          preferLocal: true,
          localDir: root,
          reject: false,
        });
        if (!result.failed) return;
        failures.push(title);
        complaints.push(`--- ${title}: ${command.join(" ")}\n${result.all || result.message}`);
        throw new Error(`${title} failed`);
      },
    })),
    {
      concurrent: 2,
      exitOnError: false,
      // Listr would end the process at once, with the clusters of other stages still there.
      registerSignalListeners: false,
      renderer: amongOthers ? "simple" : "default",
      rendererOptions: { timer: PRESET_TIMER, showErrorMessage: false, collapseErrors: true },
      fallbackRendererOptions: { timer: PRESET_TIMER },
    },
  );
  await tasks.run();
  for (const complaint of complaints) console.error(`\n${complaint}`);
  return { passed: checks.length - failures.length, failures, skipped: 0 };
}
