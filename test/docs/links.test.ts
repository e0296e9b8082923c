import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const documents = globSync(["*.md", "{docs,founat,config,test}/**/*.md"], {
  cwd: root,
  exclude: (path) => path.includes("node_modules"),
});
const markdownLink = /\[[^\]]*\]\((?!https?:)([^)#\s]+)(#[^)]*)?\)/g;

test.each(documents)("every relative link in %s leads to a file", (document) => {
  const file = join(root, document);
  const targets = [...readFileSync(file, "utf8").matchAll(markdownLink)].map((match) =>
    join(dirname(file), match[1] ?? ""),
  );
  const broken = targets.filter((target) => !existsSync(target)).map((target) => relative(root, target));
  expect(broken).toEqual([]);
});
