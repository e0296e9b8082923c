import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CHART } from "./chart.ts";
import { valuesIn } from "./values-table.ts";

test("a value has the description, the default and the path that helm-docs gives it", () => {
  const values = `
# The images.
image:
  # -- Where they
  # are.
  # @default -- nowhere
  registry: ""
  tag: x
# a: {}

# -- All of it.
resources:
  cpu: 1
#  memory: 2

# not this one
# -- The last.
list: [a]
`;
  expect(valuesIn(values)).toEqual([
    { path: "image.registry", standard: "nowhere", description: "Where they are." },
    { path: "image.tag", standard: '`"x"`', description: "" },
    { path: "resources", standard: '`{"cpu":1}`', description: "All of it." },
    { path: "list", standard: '`["a"]`', description: "The last." },
  ]);
});

test("every value of the chart is described, in sentences", async () => {
  const rows = valuesIn(await readFile(join(CHART, "values.yaml"), "utf8"));
  expect(rows.length).toBeGreaterThan(30);
  for (const { path, description } of rows) expect(description, path).toMatch(/^[A-Z].*[.]$/);
});

test("the chart's README links to nothing that is not there outside the checkout", async () => {
  const readme = await readFile(join(CHART, "README.md"), "utf8");
  expect(readme.match(/\]\((?!https:\/\/|#)[^)]*\)/g) ?? []).toEqual([]);
});
