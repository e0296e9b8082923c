import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startControllers } from "../bed/api/controllers.ts";
import { InstalledChart } from "./installed-chart.ts";
import { startOperator } from "./running-operator.ts";

const NAMESPACE = "autoscaling-test";
const SAMPLE = join(import.meta.dirname, "../../config/samples/autoscaling.yaml");
/** The sample's Egress. */
const NAME = "elastic";

const eventually = { timeout: 60_000, interval: 200 };

let chart: InstalledChart;
let operator: AsyncDisposable;

beforeAll(async () => {
  chart = await InstalledChart.in(NAMESPACE);
  operator = await startOperator(chart);
  const { exitCode, all } = await chart.run(["apply", "-n", NAMESPACE, "-f", SAMPLE]);
  if (exitCode !== 0) throw new Error(all);
});

afterAll(async () => {
  await operator[Symbol.asyncDispose]();
  await chart.uninstall();
});

const read = async (what: string, field: string) =>
  (await chart.run(["get", what, NAME, "-n", NAMESPACE, `-o=jsonpath={${field}}`])).stdout;
const gateways = () => read("deployment", ".spec.replicas");

describe("an Egress", () => {
  test("is scaled by kubectl, and its gateways follow", async () => {
    const { exitCode, all } = await chart.run(["scale", `egress/${NAME}`, "--replicas=5", "-n", NAMESPACE]);
    expect(exitCode, all).toBe(0);
    await expect.poll(gateways, eventually).toBe("5");
    await chart.run(["scale", `egress/${NAME}`, "--replicas=1", "-n", NAMESPACE]);
    await expect.poll(gateways, eventually).toBe("1");
  });

  test("says to autoscalers how many gateways there should be, how many there are, and which they are", async () => {
    // As the Deployment's controller would say it.
    const status = JSON.stringify({ status: { replicas: 1, updatedReplicas: 1 } });
    const patch = ["patch", "deployment", NAME, "-n", NAMESPACE, "--subresource=status", "--type=merge"];
    await chart.run([...patch, "-p", status]);
    const path = `/apis/coil.cybozu.com/v2/namespaces/${NAMESPACE}/egresses/${NAME}/scale`;
    const scale = async () => JSON.parse((await chart.run(["get", "--raw", path])).stdout);
    await expect.poll(scale, eventually).toMatchObject({
      apiVersion: "autoscaling/v1",
      kind: "Scale",
      spec: { replicas: 1 },
      status: { replicas: 1, selector: `coil.cybozu.com/egress=${NAME}` },
    });
    const labels = JSON.parse(await read("deployment", ".spec.template.metadata.labels"));
    expect(labels).toMatchObject({ "coil.cybozu.com/egress": NAME });
  });

  test("is scaled by Kubernetes' own autoscaler, and stays so when its manifest is applied again", async () => {
    const period = "--horizontal-pod-autoscaler-sync-period=1s";
    {
      await using _autoscaler = await startControllers(["horizontal-pod-autoscaler-controller"], [period]);
      // The sample's minimum. Whatever the load is, nobody measures it here.
      await expect.poll(gateways, eventually).toBe("2");
      const able = '.status.conditions[?(@.type=="AbleToScale")].status';
      expect(await read("horizontalpodautoscaler", able)).toBe("True");
    }
    await chart.run(["apply", "-n", NAMESPACE, "-f", SAMPLE]);
    expect(await read("egress", ".spec.replicas")).toBe("2");
  });
});
