import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createRegistry } from "./registry.ts";
import { VERSION } from "./version.ts";

const ROOT = join(import.meta.dirname, "../..");

test("every program says which version it is", async () => {
  expect(await createRegistry().metrics()).toContain(`egress_nat_build_info{version="${VERSION}"} 1`);
});

test("that is the version of the package and of the chart's images", () => {
  expect(JSON.parse(readFileSync(join(ROOT, "program/package.json"), "utf8"))).toMatchObject({
    version: VERSION,
  });
  const chart = readFileSync(join(ROOT, "config/helm/egress-nat/Chart.yaml"), "utf8");
  expect(/^appVersion: "?([^"\n]+)"?$/m.exec(chart)?.[1]).toBe(VERSION);
});
