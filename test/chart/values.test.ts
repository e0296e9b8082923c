import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CHART } from "@egress-nat/tools/chart";
import { valuesIn } from "@egress-nat/tools/chart/values-table";
import { helmBinary } from "@egress-nat/tools/system/client-tools";
import { execa } from "execa";
import { beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { type Rendered, render } from "./render.ts";
import { renderedDifferences } from "./rendered-differences.ts";
import { ALL_OPTIONS, VALUE_SETS } from "./value-sets.ts";

const TESTDATA = "testdata";

const goldenOf = (name: string) => `${name.replaceAll(/\W+/g, "-")}.txt`;

let standard: readonly Rendered[];

beforeAll(async () => {
  standard = await render();
});

test.each(Object.entries(VALUE_SETS))("%s: what the values change", async (name, values) => {
  const changes = renderedDifferences(standard, await render(values));
  const text = `${stringify(values, { lineWidth: 110 })}${changes}`;
  await expect(text).toMatchFileSnapshot(join(TESTDATA, goldenOf(name)));
  expect(changes).not.toBe("");
});

test("each file of expected changes belongs to one of these", async () => {
  const files = await readdir(join(import.meta.dirname, TESTDATA));
  expect(files.toSorted()).toEqual(Object.keys(VALUE_SETS).map(goldenOf).toSorted());
});

test("each value of the chart is among these", async () => {
  const has = (path: string, values: unknown): boolean =>
    path
      .split(".")
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], values) !==
    undefined;
  const paths = valuesIn(await readFile(join(CHART, "values.yaml"), "utf8")).map(({ path }) => path);
  expect(paths.filter((path) => !Object.values(VALUE_SETS).some((values) => has(path, values)))).toEqual([]);
});

test("helm lint has nothing to say of all of them at once", async () => {
  const lint = [await helmBinary(), ["lint", "--strict", "--values", "-", CHART]] as const;
  const { all, exitCode } = await execa(...lint, {
    input: JSON.stringify(ALL_OPTIONS),
    all: true,
    reject: false,
  });
  expect(exitCode, all).toBe(0);
  expect(all).not.toMatch(/\[(INFO|WARNING|ERROR)\]/);
});
