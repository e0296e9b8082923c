import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./markdown.ts";
import { testNames } from "./test-names.ts";

const document = join(ROOT, "docs/testing.md");
const [, section = ""] = readFileSync(document, "utf8").split(
  "\n## What is promised, and where it is tested\n",
);
const [tables = ""] = section.split("\n## ");
const rows = [...tables.matchAll(/^\| .*\]\(([^)]+)\) +\| `(.+)` +\|$/gm)].map(
  ([, path = "", name = ""]) => [path, name] as const,
);

test("each row of the tables names a test", () => {
  expect(rows.length).toBeGreaterThan(100);
  const lines = tables.split("\n").filter((line) => /^\| (?!promise |-)/.test(line));
  expect(rows).toHaveLength(lines.length);
});

test.each(rows)("there is a test in %s that is called %j", (path, name) => {
  const file = join(dirname(document), path);
  expect(existsSync(file) && [...testNames(file)]).toContain(name);
});
