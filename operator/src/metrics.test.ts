import { expectStandardNames } from "@egress-nat/test/docs/metric-names";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { anEgress } from "./egress/testing/egress.ts";
import { OperatorMetrics } from "./metrics.ts";

const condition = (type: string, status: string) => ({
  ...{ type, status, reason: "Any", message: "" },
  lastTransitionTime: "2026-01-02T03:04:05Z",
});

function metricsOf(isLeader: boolean): Registry {
  const registry = new Registry();
  new OperatorMetrics(registry).watch({
    controllers: [],
    clusterRanges: () => ({ values: [], services: [], pods: [], nodes: [], serviceAddresses: [] }),
    watches: () => ({}),
    isLeader: () => isLeader,
    egresses: () => [
      anEgress(
        {},
        { status: { conditions: [condition("Available", "True"), condition("Degraded", "False")] } },
      ),
      anEgress({}, { metadata: { name: "new" } }),
    ],
  });
  return registry;
}

/** The lines of a metric, without those of help. */
async function lines(isLeader: boolean): Promise<string[]> {
  const text = await metricsOf(isLeader).getSingleMetricAsString("egress_nat_operator_condition");
  return text.split("\n").filter((line) => !line.startsWith("#") && line !== "");
}

test("conditions are told as kube-state-metrics does", async () => {
  const sample = (type: string, status: string, value: number) =>
    `egress_nat_operator_condition{namespace="internet",egress="nat",type="${type}",status="${status}"} ${value}`;
  expect(await lines(true)).toEqual([
    ...[sample("Available", "true", 1), sample("Available", "false", 0), sample("Available", "unknown", 0)],
    ...[sample("Degraded", "true", 0), sample("Degraded", "false", 1), sample("Degraded", "unknown", 0)],
  ]);
});

test("conditions are told by the operator that leads alone", async () => {
  expect(await lines(false)).toEqual([]);
});

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  await expectStandardNames(metricsOf(true));
});
