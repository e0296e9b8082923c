import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** What the tests run on: both platforms' packages, at one exact version. */
const { optionalDependencies } = JSON.parse(read("package.json")) as {
  optionalDependencies: Record<string, string>;
};
const versions = [...new Set(Object.values(optionalDependencies))];

test("the images' base has exactly the Node that the tests run on", () => {
  const expected = versions.map((version) => `node:${version}-bookworm-slim`);
  for (const program of ["operator", "egress-pod", "client-sidecar"]) {
    const bases = read(`${program}/Dockerfile`).match(/^ARG BASE=.*$/gm);
    expect(bases, program).toEqual(expected.map((base) => `ARG BASE=${base}`));
  }
});

test("documents that name an image of Node name the same, or the fuller one in which the project is built", () => {
  const documents = globSync(["*.md", "docs/*.md"], { cwd: root });
  const named = documents.flatMap((path) => read(path).match(/\bnode:\d[\w.-]*/g) ?? []);
  const expected = versions.flatMap((version) => [
    `node:${version}-bookworm-slim`,
    `node:${version}-bookworm`,
  ]);
  expect(new Set(named)).toEqual(new Set(expected));
});
