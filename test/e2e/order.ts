import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The last files, in this order. After an outage of the apiserver who watches it comes back one after the other, within a
 * minute: meanwhile run files that start no pods. And whoever uninstalls the product takes it from the others.
 */
const LAST = ["faults", "in-cluster", "client-guard", "transfers", "install-uninstall"].map(
  (name) => `/${name}.e2e.test.ts`,
);

/** Vitest's own order, but for the files that must run last. */
export default class DisruptiveLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      LAST.findIndex((name) => moduleId.endsWith(name));
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
