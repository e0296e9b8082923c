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

function namedIn(document: string): string[] {
  return [...new Set(read(document).match(/egress_nat_\w+/g))];
}

/** What Prometheus and its adapters make of a metric's name; those of nft's tables are no metrics. */
const notOurs = /_per_second$|^egress_nat_(client|gateway)$/;

test.each(globSync(["*.md", "docs/*.md", "config/**/*.md"], { cwd: root }))(
  "each metric that a document names exists: %s",
  (document) => {
    const named = namedIn(document).filter((name) => !notOurs.test(name));
    expect(named.filter((name) => !defined.some((metric) => metric.test(name)))).toEqual([]);
  },
);

test("each metric is in the operations guide", () => {
  const named = namedIn("docs/operations.md");
  expect(defined.length).toBeGreaterThan(20);
  expect(defined.filter((metric) => !named.some((name) => metric.test(name)))).toEqual([]);
});
