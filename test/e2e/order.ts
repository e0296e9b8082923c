import { BaseSequencer, type TestSpecification } from "vitest/node";

const LAST = "install-uninstall.e2e.test.ts";

/** Vitest's own order, but for the file that uninstalls the product: the others need what it takes away. */
export default class UninstallLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLast = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith(LAST);
    return [...sorted.filter((file) => !isLast(file)), ...sorted.filter(isLast)];
  }
}
