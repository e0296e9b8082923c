import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** As the programs' sources name them: a part of a name may be a variable. */
const defined = globSync("{program,operator,egress-pod,client-sidecar}/src/**/*.ts", {
  cwd: root,
  exclude: (path) => path.endsWith(".test.ts"),
})
  .flatMap((path) => [...read(path).matchAll(/["`](egress_nat_(?:\w|\$\{\w+\})+)["`]/g)])
  .map(([, name = ""]) => new RegExp(`^${name.replaceAll(/\$\{\w+\}/g, "\\w+")}$`));

const named = [...new Set(read("docs/operations.md").match(/egress_nat_\w+/g))];

test("each metric that the operations guide names exists", () => {
  expect(named.filter((name) => !defined.some((metric) => metric.test(name)))).toEqual([]);
});

test("each metric is in the operations guide", () => {
  expect(defined.length).toBeGreaterThan(20);
  expect(defined.filter((metric) => !named.some((name) => metric.test(name)))).toEqual([]);
});
