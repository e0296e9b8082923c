import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";
import { atLeastOne, sum, type Tally } from "./tally.ts";

/** As much of a test as is told here. */
interface CountedTest {
  readonly fullName: string;
  readonly result: () => { readonly errors?: readonly { readonly message: string }[] | undefined };
}

/** As much of a file of tests as is counted here. */
export interface CountedModule {
  readonly relativeModuleId: string;
  readonly ok: TestModule["ok"];
  readonly children: {
    readonly allTests: (state: "passed" | "failed" | "skipped") => Iterable<CountedTest>;
  };
}

/**
 * Sends what came of a run to the program that has started Vitest.
 *
 * @public by its path
 */
export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    process.send?.(tallyOf(modules, unhandledErrors));
  }
}

/**
 * Counts the tests of one Vitest run.
 *
 * Of a file that does not load, a hook that throws and an unhandled error no test tells. Each such file counts as one
 * failure here, and so do errors when nothing else has failed.
 */
export function tallyOf(
  modules: readonly CountedModule[],
  unhandledErrors: readonly { readonly message: string }[],
): Tally {
  const count = ({ children }: CountedModule, state: "passed" | "skipped") =>
    [...children.allTests(state)].length;
  const tally = sum(
    modules.map((module) => ({
      passed: count(module, "passed"),
      failures: failuresOf(module),
      skipped: count(module, "skipped"),
    })),
  );
  const [error] = unhandledErrors;
  const isUntold = tally.failures.length === 0 && error !== undefined;
  return atLeastOne(
    isUntold ? { ...tally, failures: [`outside of tests: ${firstLine(error.message)}`] } : tally,
  );
}

function failuresOf(module: CountedModule): string[] {
  const file = module.relativeModuleId;
  const failed = [...module.children.allTests("failed")].map((test) => {
    const [error] = test.result().errors ?? [];
    return `${file} > ${test.fullName}: ${firstLine(error?.message ?? "")}`;
  });
  if (failed.length > 0 || module.ok()) return failed;
  return [`${file}: the file does not load, or one of its hooks has failed`];
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
