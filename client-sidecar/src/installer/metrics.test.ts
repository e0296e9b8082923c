import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { InstallerMetrics } from "./metrics.ts";

const OPERATIONS = readFileSync(join(import.meta.dirname, "../../../docs/operations.md"), "utf8");

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  const registry = new Registry();
  new InstallerMetrics(registry);
  const metrics = await registry.getMetricsAsJSON();
  expect(metrics).not.toEqual([]);
  const ending = { counter: /_total$/, histogram: /_duration_seconds$/, gauge: /(?<!_total)$/ };
  for (const { name, type } of metrics) {
    expect(name).toMatch(ending[type as unknown as keyof typeof ending]);
    expect(OPERATIONS).toContain(`\`${name}\``);
  }
});
