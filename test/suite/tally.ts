/** What came of a stage: how many of its tests, or checks, passed and failed. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };

export function sum(tallies: readonly Tally[]): Tally {
  return tallies.reduce(
    (total, each) => ({
      passed: total.passed + each.passed,
      failed: total.failed + each.failed,
      skipped: total.skipped + each.skipped,
    }),
    NOTHING,
  );
}

/** A stage that executed nothing says nothing about the product: it has failed. */
export function atLeastOne(tally: Tally): Tally {
  return tally.passed + tally.failed > 0 ? tally : { ...tally, failed: 1 };
}
