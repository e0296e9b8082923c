/** What came of a stage: of its tests, or checks, how many passed and which failed. */
export interface Tally {
  readonly passed: number;
  /** A line for each, which says what it was and why. */
  readonly failures: readonly string[];
  readonly skipped: number;
}

const NOTHING: Tally = { passed: 0, failures: [], skipped: 0 };

export function sum(tallies: readonly Tally[]): Tally {
  return tallies.reduce(
    (total, each) => ({
      passed: total.passed + each.passed,
      failures: [...total.failures, ...each.failures],
      skipped: total.skipped + each.skipped,
    }),
    NOTHING,
  );
}

/** Of a stage that has failed as a whole. */
export function failure(reason: string): Tally {
  return { ...NOTHING, failures: [reason] };
}

/** A stage that executed nothing says nothing about the product: it has failed. */
export function atLeastOne(tally: Tally): Tally {
  const executed = tally.passed + tally.failures.length;
  return executed > 0 ? tally : { ...tally, failures: ["no test was executed"] };
}
