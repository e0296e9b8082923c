import type { Reporter, TestModule } from "vitest/node";
import { atLeastOne, sum, type Tally } from "./tally.ts";

/** As much of a file of tests as is counted here. */
export interface CountedModule {
  readonly ok: TestModule["ok"];
  readonly children: { readonly allTests: (state: "passed" | "failed" | "skipped") => Iterable<unknown> };
}

/**
 * Sends what came of a run to the program that has started Vitest.
 *
 * @public by its path
 */
export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    process.send?.(tallyOf(modules, unhandledErrors.length));
  }
}

/**
 * Counts the tests of one Vitest run.
 *
 * Of a file that does not load, a hook that throws and an unhandled error no test tells. Each such file counts as one
 * failure here, and so do errors when nothing else has failed.
 */
export function tallyOf(modules: readonly CountedModule[], unhandledErrors: number): Tally {
  const count = (module: CountedModule, state: "passed" | "failed" | "skipped") =>
    [...module.children.allTests(state)].length;
  const tallies = modules.map((module) => {
    const failed = count(module, "failed");
    return {
      passed: count(module, "passed"),
      failed: failed === 0 && !module.ok() ? 1 : failed,
      skipped: count(module, "skipped"),
    };
  });
  const tally = sum(tallies);
  return atLeastOne(tally.failed === 0 && unhandledErrors > 0 ? { ...tally, failed: 1 } : tally);
}
