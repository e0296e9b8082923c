import { join } from "node:path";
import { CHART } from "@egress-nat/tools/chart";
import { helmTemplate } from "@egress-nat/tools/chart/helm-template";
import { kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { goModule } from "@egress-nat/tools/system/go-module";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { InstalledChart } from "./installed-chart.ts";
import { ALL_OPTIONS } from "./value-sets.ts";

const NAMESPACE = "strict-validation-test";

/** Of PodMonitors and PrometheusRules, as the Prometheus operator has them. */
let definitions: readonly string[];

async function kubectl(args: readonly string[], input = "") {
  const kubeconfig = `--kubeconfig=${inject("kubeconfig")}`;
  return execa(await kubectlBinary(), [kubeconfig, ...args], { input, reject: false, all: true });
}

beforeAll(async () => {
  const { folder } = await goModule(
    join(import.meta.dirname, "prometheus-operator"),
    "github.com/prometheus-operator/prometheus-operator",
  );
  definitions = ["podmonitors", "prometheusrules"].map(
    (name) => `--filename=${folder}/example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
  );
  await kubectl(["apply", "--server-side", ...definitions]);
  const wait = ["wait", "--for=condition=Established", "--timeout=30s", ...definitions];
  // Asked before a CRD has any condition, kubectl does not wait but fails.
  await waitUntil(async () => (await kubectl(wait)).exitCode === 0, {
    what: "the Prometheus operator's CRDs to be established",
    timeoutMs: 30_000,
  });
});

afterAll(async () => {
  await kubectl(["delete", ...definitions]);
});

test.each([
  ["its default values", `${NAMESPACE}-default`, {}],
  ["all options", `${NAMESPACE}-all`, ALL_OPTIONS],
])(
  "the API server knows every field of the chart with %s, hooks too, and warns of none",
  async (_, namespace, values) => {
    const chart = await InstalledChart.in(namespace, values);
    await chart.uninstall();
  },
);

test("the API server knows every field of the CRDs, and warns of none", async () => {
  const strict = ["--server-side", "--dry-run=server", "--validate=strict", "--warnings-as-errors"];
  const { all, exitCode } = await kubectl(["apply", ...strict, `--filename=${join(CHART, "crds")}`]);
  expect(exitCode, all).toBe(0);
});

test("a field that is misspelt would be refused, in objects of the Prometheus operator too", async () => {
  const { stdout } = await helmTemplate({ values: ALL_OPTIONS });
  const misspelt = stdout
    .replaceAll("timeoutSeconds:", "timeoutSecs:")
    .replaceAll("honorLabels:", "keepLabels:")
    .replaceAll("alert:", "alarm:");
  const { all, exitCode } = await kubectl(
    ["create", "--dry-run=server", "--validate=strict", "--filename=-"],
    misspelt,
  );
  expect(exitCode).not.toBe(0);
  for (const field of [
    "spec.template.spec.containers[0].readinessProbe.timeoutSecs",
    "spec.podMetricsEndpoints[0].keepLabels",
    "spec.groups[0].rules[0].alarm",
  ]) {
    expect(all).toContain(`unknown field "${field}"`);
  }
});
