import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, removeCluster } from "../bed/cluster/cluster.ts";
import { upOneNode } from "../bed/cluster/one-node.ts";
import { installChart, RELEASE } from "../bed/workload/chart.ts";
import { gatewaysOf } from "../bed/workload/gateways.ts";
import { Kubectl } from "../bed/workload/kubectl.ts";
import { OLDEST } from "./names.ts";
import { prove } from "./proof.ts";
import { EGRESS, setTheScene, witnesses } from "./scene.ts";

let cluster: Cluster;

beforeAll(async () => {
  cluster = await upOneNode(OLDEST, { kubernetes: "oldest" });
  await installChart(cluster);
});

afterAll(() => removeCluster(OLDEST));

test("on the oldest Kubernetes that is supported clients are seen as their gateways, and nobody else is", async () => {
  const kubectl = new Kubectl(cluster.kubectlCommand);
  const nodes = cluster.nodes.map(({ name }) => name);
  await setTheScene(kubectl, nodes);
  const seen = await witnesses(kubectl, nodes, cluster.plan.internet.wide);
  const { rows, faults } = prove(seen, await gatewaysOf(kubectl, EGRESS));
  expect(faults).toEqual([]);
  expect(rows.length).toBeGreaterThan(0);
});

test("helm test finds the installation whole there", async () => {
  const answer = await cluster.helm(["test", RELEASE.name, "--namespace", RELEASE.namespace, "--logs"]);
  expect(answer).toContain("Phase:          Succeeded");
});

test("and no policy has an expression without a type", async () => {
  const warnings = "{.items[*].status.typeChecking.expressionWarnings}";
  expect(await cluster.kubectl(["get", "validatingadmissionpolicies", `--output=jsonpath=${warnings}`])).toBe(
    "",
  );
});
