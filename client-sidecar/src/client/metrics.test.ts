import { expectStandardNames } from "@egress-nat/test/docs/metric-names";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { agentMetrics } from "../testing/agent-metrics.ts";

test("Egresses that are not understood are told as the operator tells them", async () => {
  const registry = new Registry();
  agentMetrics(registry, { invalidEgresses: () => 2 });
  const text = await registry.getSingleMetricAsString("egress_nat_agent_invalid_objects");
  expect(text).toContain('egress_nat_agent_invalid_objects{kind="Egress"} 2');
});

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  const registry = new Registry();
  agentMetrics(registry);
  await expectStandardNames(registry);
});
