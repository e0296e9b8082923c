import { expectStandardNames } from "@egress-nat/test/docs/metric-names";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { anEgress } from "./egress/testing/egress.ts";
import { OperatorMetrics } from "./metrics.ts";

const condition = (type: string, status: string) => ({
  ...{ type, status, reason: "Any", message: "" },
  lastTransitionTime: "2026-01-02T03:04:05Z",
});

const gateway = (name: string, state: string) => ({ name, addresses: ["10.244.1.7"], state });

function metricsOf(isLeader: boolean): Registry {
  const registry = new Registry();
  new OperatorMetrics(registry).watch({
    controllers: [],
    clusterRanges: () => ({ values: [], services: [], pods: [], nodes: [], serviceAddresses: [] }),
    watches: () => ({
      egresses: { phase: "watching", synced: true, resourceVersion: "7" },
      nodes: { phase: "waiting", synced: true, resourceVersion: "7" },
      servicecidrs: { phase: "unserved", synced: true, resourceVersion: undefined },
    }),
    isLeader: () => isLeader,
    egresses: () => [
      anEgress(
        {},
        {
          status: {
            conditions: [condition("Available", "True"), condition("Degraded", "False")],
            gateways: [gateway("one", "Ready"), gateway("two", "Ready"), gateway("three", "Suspect")],
          },
        },
      ),
      anEgress({}, { metadata: { name: "new" } }),
    ],
  });
  return registry;
}

/** The lines of a metric, without those of help. */
async function lines(name: string, isLeader: boolean): Promise<string[]> {
  const text = await metricsOf(isLeader).getSingleMetricAsString(name);
  return text.split("\n").filter((line) => !line.startsWith("#") && line !== "");
}

test("what the API server does not serve is no watch that is down", async () => {
  const sample = (resource: string, value: number) =>
    `egress_nat_operator_watch_up{resource="${resource}"} ${value}`;
  expect(await lines("egress_nat_operator_watch_up", true)).toEqual([
    ...[sample("egresses", 1), sample("nodes", 0), sample("servicecidrs", 1)],
  ]);
});

test("conditions are told as kube-state-metrics does", async () => {
  const sample = (type: string, status: string, value: number) =>
    `egress_nat_operator_condition{namespace="internet",egress="nat",type="${type}",status="${status}"} ${value}`;
  expect(await lines("egress_nat_operator_condition", true)).toEqual([
    ...[sample("Available", "true", 1), sample("Available", "false", 0), sample("Available", "unknown", 0)],
    ...[sample("Degraded", "true", 0), sample("Degraded", "false", 1), sample("Degraded", "unknown", 0)],
  ]);
});

test("gateways are counted by state, of an Egress that has none as well", async () => {
  const samples = (egress: string, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(
      ([state, count]) =>
        `egress_nat_operator_gateways{namespace="internet",egress="${egress}",state="${state}"} ${count}`,
    );
  expect(await lines("egress_nat_operator_gateways", true)).toEqual([
    ...samples("nat", { Ready: 2, Suspect: 1, Draining: 0, Down: 0 }),
    ...samples("new", { Ready: 0, Suspect: 0, Draining: 0, Down: 0 }),
  ]);
});

test.each(["egress_nat_operator_condition", "egress_nat_operator_gateways"])(
  "%s is told by the operator that leads alone",
  async (name) => {
    expect(await lines(name, false)).toEqual([]);
  },
);

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  await expectStandardNames(metricsOf(true));
});
