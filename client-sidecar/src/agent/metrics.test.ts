import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { agentMetrics } from "../testing/agent-metrics.ts";

const OPERATIONS = readFileSync(join(import.meta.dirname, "../../../docs/operations.md"), "utf8");

test("Egresses that are not understood are told as the operator tells them", async () => {
  const registry = new Registry();
  agentMetrics(registry, { invalidEgresses: () => 2 });
  const text = await registry.getSingleMetricAsString("egress_nat_agent_invalid_objects");
  expect(text).toContain('egress_nat_agent_invalid_objects{kind="Egress"} 2');
});

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  const registry = new Registry();
  agentMetrics(registry);
  const metrics = await registry.getMetricsAsJSON();
  const ending = { counter: /_total$/, histogram: /_duration_seconds$/, gauge: /(?<!_total)$/ };
  for (const { name, type } of metrics) {
    expect(name).toMatch(ending[type as unknown as keyof typeof ending]);
    expect(OPERATIONS).toContain(`\`${name}\``);
  }
});
