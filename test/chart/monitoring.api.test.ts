import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CHART } from "@egress-nat/tools/chart";
import { goProgram } from "@egress-nat/tools/system/go-program";
import { execa } from "execa";
import { beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { find, type Rendered, render } from "./render.ts";

let objects: readonly Rendered[];

beforeAll(async () => {
  objects = await render({
    metrics: {
      podMonitor: { enabled: true, labels: { release: "prometheus" }, interval: "30s" },
      prometheusRule: { enabled: true, labels: { release: "prometheus" } },
    },
  });
});

describe("the alerts", () => {
  const rule = () => find(objects, "PrometheusRule", "egress-nat");

  test("are rules that Prometheus takes", async () => {
    const program = await goProgram({
      name: "prometheus-rules",
      folder: join(import.meta.dirname, "prometheus-rules"),
      versionOf: "github.com/prometheus/prometheus",
    });
    const objections = async (input: string) => (await execa(program, { input })).stdout;
    expect(await objections(stringify(rule().spec))).toBe("");
    expect(await objections(await readFile(join(CHART, "alerts.yaml"), "utf8"))).toBe("");
    expect(await objections(stringify(rule().spec).replaceAll("== 0", "=="))).toContain("parse error");
  });

  test("ask for metrics that the programs have", async () => {
    const operations = await readFile(join(import.meta.dirname, "../../docs/operations.md"), "utf8");
    const metrics = JSON.stringify(rule().spec).match(/egress_nat_\w+/g) ?? [];
    expect(metrics.length).toBeGreaterThan(8);
    for (const metric of metrics) expect(operations).toContain(`\`${metric}\``);
  });
});

test("all programs are scraped, gateways in whatever namespace", () => {
  const monitors = objects.filter(({ kind }) => kind === "PodMonitor");
  expect(monitors.map(({ metadata, spec }) => [metadata.name, spec])).toEqual([
    [
      "egress-nat",
      {
        selector: {
          matchLabels: { "app.kubernetes.io/name": "egress-nat", "app.kubernetes.io/instance": "egress-nat" },
        },
        namespaceSelector: { matchNames: ["egress-nat"] },
        podMetricsEndpoints: [{ port: "health", honorLabels: true, interval: "30s" }],
      },
    ],
    [
      "egress-nat-gateways",
      {
        selector: { matchExpressions: [{ key: "coil.cybozu.com/egress", operator: "Exists" }] },
        namespaceSelector: { any: true },
        // Anybody may make a pod with that label.
        podMetricsEndpoints: [{ port: "health", interval: "30s" }],
      },
    ],
  ]);
  for (const { metadata } of [...monitors, find(objects, "PrometheusRule", "egress-nat")])
    expect(metadata.labels).toMatchObject({ release: "prometheus" });
});

test("agents are not scraped where they serve their own node only", async () => {
  const rendered = await render({ metrics: { podMonitor: { enabled: true }, agentAddress: "127.0.0.1" } });
  expect(find(rendered, "PodMonitor", "egress-nat").spec.selector).toEqual({
    matchLabels: { "app.kubernetes.io/name": "egress-nat", "app.kubernetes.io/instance": "egress-nat" },
    matchExpressions: [{ key: "app.kubernetes.io/component", operator: "NotIn", values: ["node-agent"] }],
  });
});

test("nothing of it is made, where the values do not ask for it", async () => {
  const kinds = (await render()).map(({ kind }) => kind);
  expect(kinds).not.toContain("PodMonitor");
  expect(kinds).not.toContain("PrometheusRule");
});
