import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Registry } from "prom-client";
import { expect } from "vitest";
import { ROOT } from "./markdown.ts";

/** By type: https://prometheus.io/docs/practices/naming/ */
const ENDINGS = { counter: /_total$/, histogram: /_duration_seconds$/, gauge: /(?<!_total)$/ };

/** Holds a program's metrics against what Prometheus wants of names, and against what docs/operations.md tells of. */
export async function expectStandardNames(registry: Registry): Promise<void> {
  const operations = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
  const metrics = await registry.getMetricsAsJSON();
  expect(metrics).not.toEqual([]);
  for (const { name, type } of metrics) {
    expect(name).toMatch(ENDINGS[type as unknown as keyof typeof ENDINGS]);
    expect(operations).toContain(`\`${name}\``);
  }
}
