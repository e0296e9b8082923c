import { AgentEnvironment, NodeDirectories } from "@egress-nat/client-sidecar";
import { CLUSTER_RANGES_CONFIG_MAP, NODE_AGENT, OPERATOR } from "@egress-nat/crds";
import { Configuration } from "@egress-nat/operator/configuration";
import { LOG_LEVEL } from "@egress-nat/program";
import { beforeAll, expect, test } from "vitest";
import { find, type Rendered, render } from "./render.ts";

let objects: readonly Rendered[];

beforeAll(async () => {
  objects = await render({
    nodeAgent: { startupTaint: "egress-nat/not-ready" },
    metrics: { agentAddress: "127.0.0.1" },
    clusterRanges: ["10.244.0.0/16"],
  });
});

test.each([
  ["Deployment", OPERATOR],
  ["ServiceAccount", OPERATOR],
  ["Lease", OPERATOR],
  ["DaemonSet", NODE_AGENT],
  ["ServiceAccount", NODE_AGENT],
  ["ConfigMap", CLUSTER_RANGES_CONFIG_MAP],
])("the chart's %s has the name that programs look for: %s", (kind, name) => {
  expect(find(objects, kind, name).metadata.name).toBe(name);
});

test.each([
  // HEALTH_PORT is for tests that run several programs in one network namespace.
  ["Deployment", OPERATOR, Configuration.omit({ HEALTH_PORT: true })],
  ["DaemonSet", NODE_AGENT, AgentEnvironment],
  ["DaemonSet", "egress-nat-uninstall", NodeDirectories],
])("the %s %s is told what its program reads, and nothing else", (kind, name, environment) => {
  const [container] = find(objects, kind, name).spec.template.spec.containers;
  const told = container.env.map((variable: { name: string }) => variable.name);
  // Node reads one by itself.
  const read = [...Object.keys(environment.shape), LOG_LEVEL];
  expect(told.filter((name: string) => name !== "NODE_OPTIONS").toSorted()).toEqual(read.toSorted());
});
