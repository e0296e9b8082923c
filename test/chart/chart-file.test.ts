import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CHART } from "@egress-nat/tools/chart";
import { expect, test } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const chart = parse(readFileSync(join(CHART, "Chart.yaml"), "utf8"));

test("the chart is of the project's version and licence", () => {
  const { version, license } = JSON.parse(read("package.json"));
  expect(chart.version).toBe(version);
  expect(chart.annotations["artifacthub.io/license"]).toBe(license);
});

test("the chart's icon is the picture in docs", () => {
  const [type, data = ""] = chart.icon.split(";base64,");
  expect(type).toBe("data:image/svg+xml");
  expect(Buffer.from(data, "base64").toString()).toBe(read("docs/icon.svg"));
});

test("Artifact Hub is told of the definitions that the chart installs", () => {
  const told = parse(chart.annotations["artifacthub.io/crds"]) as Record<
    "kind" | "version" | "name",
    string
  >[];
  const installed = readdirSync(join(CHART, "crds")).map((file) => {
    const { metadata, spec } = parse(readFileSync(join(CHART, "crds", file), "utf8"));
    const [{ name: version }] = spec.versions;
    return { kind: spec.names.kind, version, name: metadata.name };
  });
  expect(told.map(({ kind, version, name }) => ({ kind, version, name }))).toEqual(
    expect.arrayContaining(installed),
  );
  expect(told).toHaveLength(installed.length);
});
