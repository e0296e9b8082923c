import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { EGRESS_LABEL, NODE_LABEL, sliceName } from "@egress-nat/crds";
import { createTransport, loadCredentials, type Transport } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { apiVersion, InstalledChart } from "./installed-chart.ts";
import { startOperator } from "./running-operator.ts";

const NAMESPACE = "chart-test";
const SAMPLES = join(import.meta.dirname, "../../config/samples");

const logger = createLogger({ name: "test", level: "silent" });

let chart: InstalledChart;
let transport: Transport;

beforeAll(async () => {
  transport = createTransport({
    credentials: await loadCredentials({ kubeconfig: inject("kubeconfig") }),
    logger,
  });
  chart = await InstalledChart.in(NAMESPACE);
});

afterAll(async () => {
  await chart.uninstall();
  transport.close();
});

const run: InstalledChart["run"] = (...args) => chart.run(...args);
const slice: InstalledChart["slice"] = (...args) => chart.slice(...args);

describe("the samples", () => {
  test("are accepted by the API server", async () => {
    await run(["create", "serviceaccount", "default"]);
    const files = (await readdir(SAMPLES)).filter((file) => file.endsWith(".yaml"));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const { exitCode, all } = await run(["apply", "--dry-run=server", "-f", join(SAMPLES, file)]);
      expect(exitCode, all).toBe(0);
    }
  });
});

test("with all that closes metrics it is accepted by the API server", async () => {
  const from = [{ namespaceSelector: {} }];
  await chart.apply({ metrics: { networkPolicy: { enabled: true, from }, agentAddress: "127.0.0.1" } });
});

type Right = [account: string, verb: string, resource: string];

test("the operator makes again what somebody has deleted of its own", async () => {
  await using _operator = await startOperator(chart);
  const eventually = { timeout: 60_000, interval: 200 };
  const stateOf = async (object: string) => {
    const path = "-o=jsonpath={.metadata.uid} {.spec.holderIdentity}{.data.ranges}";
    const { stdout } = await run(["get", ...object.split(" "), "-n", NAMESPACE, path, "--ignore-not-found"]);
    return stdout;
  };
  for (const object of ["lease egress-nat-operator", "configmap egress-nat-cluster-ranges"]) {
    await expect.poll(() => stateOf(object), eventually).toMatch(/ \S/);
    const before = await stateOf(object);
    await run(["delete", ...object.split(" "), "-n", NAMESPACE]);
    await expect.poll(() => stateOf(object), eventually).toMatch(/ \S/);
    expect(await stateOf(object)).not.toBe(before);
  }
});

describe("the rights", () => {
  const may = async (account: string, verb: string, what: string): Promise<boolean> => {
    const [plural = "", subresource = ""] = what.split("/");
    const [resource, ...group] = plural.split(".");
    const { status } = await transport.request<{ status: { allowed: boolean } }>({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      body: {
        spec: {
          user: `system:serviceaccount:${NAMESPACE}:${account}`,
          resourceAttributes: { verb, group: group.join("."), resource, subresource },
        },
      },
    });
    return status.allowed;
  };

  test.each<Right>([
    ["egress-nat-operator", "patch", "deployments.apps"],
    ["egress-nat-operator", "patch", "egresses.coil.cybozu.com/status"],
    ["egress-nat-operator", "delete", "egressclientslices.coil.cybozu.com"],
    ...["list", "watch", "create", "patch", "delete"].map(
      (verb) => ["egress-nat-node-agent", verb, "egressclientslices.coil.cybozu.com"] satisfies Right,
    ),
    ["egress-nat-node-agent", "watch", "egresses.coil.cybozu.com"],
    ["egress-nat-node-agent", "watch", "endpointslices.discovery.k8s.io"],
  ])("let %s %s %s", async (account, verb, resource) => {
    expect(await may(account, verb, resource)).toBe(true);
  });

  test.each<Right>([
    ["egress-nat-operator", "get", "secrets"],
    ["egress-nat-operator", "get", "egresses.coil.cybozu.com"],
    ["egress-nat-operator", "get", "egressclientslices.coil.cybozu.com"],
    ["egress-nat-operator", "get", "namespaces"],
    ["egress-nat-operator", "get", "endpointslices.discovery.k8s.io"],
    ["egress-nat-operator", "list", "pods"],
    ["egress-nat-operator", "create", "pods/exec"],
    ["egress-nat-operator", "delete", "deployments.apps"],
    ["egress-nat-operator", "patch", "egresses.coil.cybozu.com"],
    ["egress-nat-operator", "patch", "egressclientslices.coil.cybozu.com"],
    ["egress-nat-operator", "create", "leases.coordination.k8s.io"],
    ["egress-nat-operator", "create", "clusterroles.rbac.authorization.k8s.io"],
    ["egress-nat-operator", "escalate", "roles.rbac.authorization.k8s.io"],
    ["egress-nat-node-agent", "get", "pods"],
    ["egress-nat-node-agent", "list", "pods"],
    ["egress-nat-node-agent", "watch", "pods"],
    ["egress-nat-node-agent", "get", "secrets"],
    ["egress-nat-node-agent", "patch", "egresses.coil.cybozu.com"],
    ["egress-nat-node-agent", "create", "pods/exec"],
    ["egress-nat-node-agent", "get", "nodes"],
    ["egress-nat-node-agent", "patch", "nodes"],
    ["egress-nat-node-agent", "get", "egresses.coil.cybozu.com"],
    ["egress-nat-node-agent", "get", "endpointslices.discovery.k8s.io"],
    ...["get", "update", "deletecollection"].map(
      (verb) => ["egress-nat-node-agent", verb, "egressclientslices.coil.cybozu.com"] satisfies Right,
    ),
  ])("do not let %s %s %s", async (account, verb, resource) => {
    expect(await may(account, verb, resource)).toBe(false);
  });

  test("let agents get pods where the values say that the runtime does not tell what they are", async () => {
    await chart.apply({ nodeAgent: { runtimePassesAnnotations: false } });
    const mayGet = () => may("egress-nat-node-agent", "get", "pods");
    await expect.poll(mayGet, { timeout: 30_000, interval: 100 }).toBe(true);
    expect(await may("egress-nat-node-agent", "list", "pods")).toBe(false);
    await chart.apply({});
    await expect.poll(mayGet, { timeout: 30_000, interval: 100 }).toBe(false);
  });
});

describe("the operator", () => {
  test("does all of its work with the rights that it has", async () => {
    // An operator that begins to lead does not wait with what is orphaned already.
    await run(["create", "-f", "-"], { input: slice("orphan", "no-such-node") });
    await using _operator = await startOperator(chart);
    const spec = { destinations: ["::/0"], podDisruptionBudget: { minAvailable: 1 } };
    await chart.create({ apiVersion, kind: "Egress", metadata: { name: "nat", namespace: NAMESPACE }, spec });
    await seen("Degraded", "get", "egress", "nat", "-o=jsonpath={.status.conditions[*].type}");
    await seen("poddisruptionbudget.policy/nat", "get", "pdb", "-o", "name");
    await seen("created Service", "events");
    await seen("No resources found", "get", "egressclientslices");

    const patch = JSON.stringify({ spec: { podDisruptionBudget: null } });
    await run(["patch", "egress", "nat", "-n", NAMESPACE, "--type=merge", "-p", patch]);
    await seen("NotFound", "get", "pdb", "nat");
  });

  async function seen(text: string, ...args: readonly string[]): Promise<void> {
    const look = async () => (await run([...args, "-n", NAMESPACE])).all;
    await expect.poll(look, { timeout: 30_000, interval: 100 }).toContain(text);
  }
});

describe("a node agent", () => {
  /** As the agent writes: by server-side apply. */
  function apply(kubeconfig: string, input: string) {
    const options = ["--server-side", "--force-conflicts", "--field-manager=egress-nat-node-agent"];
    return run(["apply", ...options, "-f", "-"], { input, kubeconfig });
  }

  const remove = (name: string, kubeconfig?: string) =>
    run(
      ["delete", "egressclientslice", name, "-n", NAMESPACE],
      kubeconfig === undefined ? {} : { kubeconfig },
    );

  test.each([
    "chart-node-1",
    "ip-192-0-2-1.region-1.compute.internal",
    "a-name-that-is-too-long-for-a-label.because-it-has.several.long.parts.example",
  ])("writes the slices of its own node, %s, and of no other", async (node) => {
    const kubeconfig = await chart.agentOn(node);
    for (const action of ["creates", "changes"]) {
      const own = await apply(kubeconfig, slice("own", node));
      expect(own.exitCode, `${action}: ${own.all}`).toBe(0);
    }
    const removal = await remove(sliceName("own", node), kubeconfig);
    expect(removal.exitCode, removal.all).toBe(0);

    expect((await apply(kubeconfig, slice("other", "chart-node-2"))).all).toContain(
      `the node agent of ${node} may not write the EgressClientSlice of chart-node-2`,
    );
  });

  test.each([
    ["the name of another node's slice", { name: sliceName("nat", "other") }],
    ["a name that ends as its own", { name: sliceName("nat-x", "chart-node-5") }],
    ["no labels", { labels: {} }],
    ["another node's label", { labels: { [EGRESS_LABEL]: "nat", [NODE_LABEL]: "other" } }],
  ])("writes no slice of its node with %s", async (_, fields) => {
    const kubeconfig = await chart.agentOn("chart-node-5");
    const { all } = await apply(kubeconfig, slice("nat", "chart-node-5", fields));
    expect(all).toContain("has the labels coil.cybozu.com/egress: EGRESS and coil.cybozu.com/node: NODE");
  });

  test("puts back the labels of its slice that somebody took away", async () => {
    const kubeconfig = await chart.agentOn("chart-node-6");
    const own = slice("nat", "chart-node-6");
    await apply(kubeconfig, own);
    const name = sliceName("nat", "chart-node-6");
    await run(["label", "egressclientslice", name, "-n", NAMESPACE, `${NODE_LABEL}-`]);
    const { exitCode, all } = await apply(kubeconfig, own);
    expect(exitCode, all).toBe(0);
    await remove(name);
  });

  test("changes and deletes no slice of another node", async () => {
    const kubeconfig = await chart.agentOn("chart-node-3");
    const foreign = sliceName("nat", "chart-node-4");
    await run(["create", "-f", "-"], { input: slice("nat", "chart-node-4") });
    const change = await apply(kubeconfig, slice("nat", "chart-node-4"));
    expect(change.all).toContain("may not write the EgressClientSlice of chart-node-4");
    const removal = await remove(foreign, kubeconfig);
    expect(removal.all).toContain("may not write the EgressClientSlice of chart-node-4");
    // People and the operator are not agents.
    expect((await remove(foreign)).exitCode).toBe(0);
  });

  test("writes nothing with a token that names no node", async () => {
    const kubeconfig = await chart.withToken("egress-nat-node-agent", "nowhere");
    const { all } = await run(["create", "-f", "-"], { input: slice("nowhere", "chart-node-1"), kubeconfig });
    expect(all).toContain("token does not name its node");
  });

  const createAs = (user: string) =>
    run(["create", "--dry-run=server", `--as=${user}`, "--as-group=system:masters", "-f", "-"], {
      input: slice("nat", "chart-node-1"),
    });

  test("is held to its node in whatever namespace its account is", async () => {
    const { all } = await createAs("system:serviceaccount:elsewhere:egress-nat-node-agent");
    expect(all).toContain("token does not name its node");
  });

  test.each([
    `system:serviceaccount:${NAMESPACE}:not-egress-nat-node-agent`,
    "somebody:egress-nat-node-agent",
  ])("is not mistaken for %s", async (user) => {
    const { exitCode, all } = await createAs(user);
    expect(exitCode, all).toBe(0);
  });
});

describe("with a startup taint, a node agent", () => {
  const TAINT = { key: "example.com/not-ready", effect: "NoSchedule" };
  const OTHER = { key: "example.com/dedicated", value: "db", effect: "NoSchedule" };
  const NODE = "chart-node-7";
  let kubeconfig: string;

  beforeAll(async () => {
    await chart.apply({ nodeAgent: { startupTaint: TAINT.key } });
    kubeconfig = await chart.agentOn(NODE, { taints: [OTHER, TAINT] });
    // The apiserver follows a new policy after a moment.
    const overreach = { metadata: { labels: { mine: "yes" } } };
    await waitUntil(async () => (await patch(NODE, overreach, "--dry-run=server")).includes("nothing else"), {
      what: "the policy of the startup taint to hold",
      timeoutMs: 30_000,
      intervalMs: 200,
      explain: () => patch(NODE, overreach, "--dry-run=server"),
    });
  });

  const patch = async (node: string, change: object, ...options: readonly string[]) =>
    (
      await run(["patch", "node", node, "--type=merge", "-p", JSON.stringify(change), ...options], {
        kubeconfig,
      })
    ).all;
  const taints = async () =>
    (await run(["get", "node", NODE, "-o", "jsonpath={.spec.taints[*].key}"])).stdout.split(" ");

  test("may change nothing else, of no node", async () => {
    await chart.agentOn("chart-node-8", { taints: [TAINT] });
    expect(await patch("chart-node-8", { spec: { taints: null } })).toContain(
      "may not change the node chart-node-8",
    );
    expect(await patch(NODE, { spec: { taints: null } })).toContain("change no other");
    expect(await patch(NODE, { spec: { unschedulable: true } })).toContain("change nothing else");
    expect(await patch(NODE, { metadata: { annotations: { mine: "yes" } } })).toContain(
      "change nothing else",
    );
    expect(await patch(NODE, { status: { phase: "Running" } }, "--subresource=status")).toContain(
      "is forbidden",
    );
  });

  test("takes it off its node, and leaves the others", async () => {
    const before = await taints();
    const { all, exitCode } = await run(["taint", "node", NODE, `${TAINT.key}-`], { kubeconfig });
    expect(exitCode, all).toBe(0);
    expect(await taints()).toEqual(before.filter((key) => key !== TAINT.key));
  });
});
