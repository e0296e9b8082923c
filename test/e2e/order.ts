import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Runs the files of the e2e tests by name, and last the one that uninstalls the product. */
export default class E2eOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): string =>
      (moduleId.includes("install-uninstall") ? "1" : "0") + moduleId;
    return files.toSorted((a, b) => rank(a).localeCompare(rank(b)));
  }
}
