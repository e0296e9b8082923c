import { networkInterfaces } from "node:os";
import { CLUSTER_RANGES_CONFIG_MAP, type Egress, SLICE_RESOURCE } from "@egress-nat/crds";
import {
  CONFIG_MAP_RESOURCE,
  ENDPOINT_SLICE_RESOURCE,
  NAMESPACE_RESOURCE,
  NODE_RESOURCE,
} from "@egress-nat/kube";
import { createRegistry, HealthServer } from "@egress-nat/program";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { SERVICE_CIDR_RESOURCE } from "./cluster-ranges/sources.ts";
import { CHILD_RESOURCES } from "./egress/children/index.ts";
import { Playground, silentLogger } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { ELABORATE } from "./testing/elaborate-egress.ts";
import { RunningOperator } from "./testing/running-operator.ts";

const { service, deployment, role } = CHILD_RESOURCES;

const eventually = { timeout: 30_000, interval: 20 };

/** One that this machine answers at, and that may stand in an EndpointSlice, where none of the loopback may. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flat();
  const own = addresses.find((each) => each?.family === "IPv4" && !each.internal);
  if (own === undefined) throw new Error("this machine has no IPv4 address but the loopback's");
  return own.address;
}

const WITHOUT_BUDGET = ["serviceAccount", "role", "roleBinding", "service", "deployment"] as const;
const ALL = [...WITHOUT_BUDGET, "disruptionBudget"];

let play: Playground;

beforeAll(async () => {
  play = await Playground.create(inject("kubeconfig"));
});

afterAll(() => play.transport.close());

/** As the controller of EndpointSlices refers to the Service of an Egress. */
async function serviceOwner(egress: string): Promise<object> {
  const uid = async () => (await play.child("service", egress))?.metadata.uid;
  await expect.poll(uid, eventually).toBeDefined();
  return { apiVersion: "v1", kind: "Service", name: egress, uid: await uid(), controller: true };
}

describe("one operator", () => {
  let operator: RunningOperator;
  let gateway: HealthServer;

  beforeAll(async () => {
    gateway = new HealthServer({
      ...{ port: 0, logger: silentLogger, registry: createRegistry() },
      ready: () => ({ ok: false, reasons: ["net.ipv4.ip_forward is 0"] }),
    });
    const gatewayHealthPort = await gateway.start();
    operator = RunningOperator.start(play.transport, play.namespace, "operator-0", { gatewayHealthPort });
  });

  afterAll(async () => {
    await operator.stop();
    await gateway.close();
  });

  test("makes the children of a new Egress, and says so in its status and an event", async () => {
    await play.createEgress("new", { podDisruptionBudget: { maxUnavailable: 1 } });
    await expect.poll(() => play.kinds("new"), eventually).toEqual(ALL);
    await expect
      .poll(() => play.conditions("new"), eventually)
      .toEqual({
        Available: "False NoGateway",
        Progressing: "True RollingOut",
        Degraded: "False AsExpected",
        Ready: "False NoGateway",
        Reconciling: "True RollingOut",
      });
    const { spec } = await play.child("service", "new");
    expect(await play.status("new")).toMatchObject({
      observedGeneration: 1,
      replicas: 0,
      readyReplicas: 0,
      selector: "coil.cybozu.com/egress=new",
      serviceIPs: spec.clusterIPs,
    });
    expect(spec).toMatchObject({
      ipFamilyPolicy: "PreferDualStack",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
    });
    await expect.poll(() => play.events("new"), eventually).toEqual(["Normal Created"]);
  });

  test("follows what its Deployment says of the gateways", async () => {
    await play.createEgress("serving", { replicas: 2 });
    await expect.poll(() => play.kinds("serving"), eventually).toEqual(WITHOUT_BUDGET);
    const counts = { replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2 };
    await play.patch(deployment, "serving", { status: { observedGeneration: 1, ...counts } }, "status");
    await expect
      .poll(() => play.conditions("serving"), eventually)
      .toEqual({
        Available: "True GatewaysAvailable",
        Progressing: "False Complete",
        Degraded: "False AsExpected",
        Ready: "True GatewaysAvailable",
      });
    expect(await play.status("serving")).toMatchObject({ replicas: 2, readyReplicas: 2 });
    await expect
      .poll(() => play.events("serving"), eventually)
      .toEqual(["Normal Available", "Normal Created"]);
  });

  test("lists the gateways behind its Service, and counts the clients of all nodes", async () => {
    await play.createEgress("listed");
    const labels = { "coil.cybozu.com/egress": "listed" };
    const endpoint = (address: string, conditions: object) => ({
      addresses: [address],
      conditions,
      nodeName: "n1",
      targetRef: { kind: "Pod", name: "listed-1", uid: "p1" },
    });
    const endpointSlice = (name: string, addressType: string, address: string) =>
      play.create(ENDPOINT_SLICE_RESOURCE, {
        metadata: { name, labels, ownerReferences: [serviceReference] },
        addressType,
        endpoints: [endpoint(address, { ready: true })],
      });
    const serviceReference = await serviceOwner("listed");
    await endpointSlice("listed-v4", "IPv4", "10.244.1.7");
    await endpointSlice("listed-v6", "IPv6", "fd00:244:1::7");
    for (const [node, clients] of [
      ["n1", ["a", "b"]],
      ["n2", ["c"]],
    ] as const) {
      const name = `${play.namespace}-${node}`;
      await play.transport.request({ method: "POST", path: "/api/v1/nodes", body: { metadata: { name } } });
      await play.createSlice({ name: `listed.${node}`, labels }, name, clients);
    }
    const gateway = { name: "listed-1", node: "n1", addresses: ["10.244.1.7", "fd00:244:1::7"] };
    await expect
      .poll(() => play.status("listed"), eventually)
      .toMatchObject({ clients: 3, gateways: [{ ...gateway, state: "Ready" }] });

    for (const [name, address] of [
      ["listed-v4", "10.244.1.7"],
      ["listed-v6", "fd00:244:1::7"],
    ] as const) {
      await play.patch(ENDPOINT_SLICE_RESOURCE, name, { endpoints: [endpoint(address, { ready: false })] });
    }
    await expect
      .poll(() => play.status("listed"), eventually)
      .toMatchObject({ gateways: [{ ...gateway, state: "Down" }] });
    await expect.poll(() => play.events("listed"), eventually).toContain("Warning GatewayLost");
    await play.delete(SLICE_RESOURCE, "listed.n1");
    await expect.poll(() => play.status("listed"), eventually).toMatchObject({ clients: 1 });
  });

  test("tells of a gateway what agents report that it does not answer, and who says so", async () => {
    await play.createEgress("unheard");
    const labels = { "coil.cybozu.com/egress": "unheard" };
    const targetRef = { kind: "Pod", name: "unheard-1", uid: "p4" };
    await play.create(ENDPOINT_SLICE_RESOURCE, {
      metadata: { name: "unheard-v4", labels, ownerReferences: [await serviceOwner("unheard")] },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.244.1.7"], conditions: { ready: true }, targetRef }],
    });
    const gateways = async () => (await play.status("unheard"))?.gateways;
    await expect.poll(gateways, eventually).toMatchObject([{ state: "Ready", since: expect.any(String) }]);
    const node = `${play.namespace}-unheard`;
    await play.create(NODE_RESOURCE, { metadata: { name: node } });
    await play.createSlice({ name: "unheard.n1", labels }, node, ["a"]);
    const report = { gateway: "unheard-1", since: "2026-01-02T03:04:05Z" };
    await play.patch(SLICE_RESOURCE, "unheard.n1", { suspects: [{ ...report, state: "Suspect" }] });
    const told = { reportedBy: node, since: report.since };
    await expect.poll(gateways, eventually).toMatchObject([{ ...told, state: "Suspect" }]);
    await play.patch(SLICE_RESOURCE, "unheard.n1", { suspects: [{ ...report, state: "Down" }] });
    const reason = "no answer through the tunnel";
    await expect.poll(gateways, eventually).toMatchObject([{ ...told, state: "Down", reason }]);
    await expect.poll(() => play.events("unheard"), eventually).toContain("Warning GatewayLost");
    const say = (status: string) =>
      play.patch(NODE_RESOURCE, node, { status: { conditions: [{ type: "Ready", status }] } }, "status");
    await say("Unknown");
    await expect.poll(gateways, eventually).toMatchObject([{ state: "Ready" }]);
    await say("True");
    await expect.poll(gateways, eventually).toMatchObject([{ ...told, state: "Down", reason }]);
    // A node that is gone says nothing any more.
    await play.delete(NODE_RESOURCE, node);
    await expect.poll(gateways, eventually).toMatchObject([{ state: "Ready" }]);
    expect((await gateways())?.[0]).not.toHaveProperty("reportedBy");
  });

  test("lists no gateway of an EndpointSlice that its Service does not own", async () => {
    await play.createEgress("claimed");
    const owner = await serviceOwner("claimed");
    for (const [name, ownerReferences] of [
      ["unowned", []],
      ["predecessors", [{ ...owner, uid: "5" }]],
      ["others", [{ ...owner, name: "other" }]],
      ["own", [owner]],
    ] as const) {
      await play.create(ENDPOINT_SLICE_RESOURCE, {
        metadata: { name, labels: { "coil.cybozu.com/egress": "claimed" }, ownerReferences },
        addressType: "IPv4",
        endpoints: [{ addresses: ["10.244.1.7"], targetRef: { kind: "Pod", name, uid: name } }],
      });
    }
    const gateways = async () => (await play.status("claimed"))?.gateways?.map(({ name }) => name);
    await expect.poll(gateways, eventually).toContain("own");
    expect(await gateways()).toEqual(["own"]);
  });

  test("tells what a gateway that is not ready says of it", async () => {
    const address = ownAddress();
    const name = `${play.namespace}-asked`;
    await play.create(NODE_RESOURCE, { metadata: { name }, spec: { podCIDRs: [`${address}/32`] } });
    await play.createEgress("hindered");
    const endpoint = { addresses: [address], conditions: { ready: false } };
    await play.create(ENDPOINT_SLICE_RESOURCE, {
      metadata: {
        name: "hindered-v4",
        labels: { "coil.cybozu.com/egress": "hindered" },
        ownerReferences: [await serviceOwner("hindered")],
      },
      addressType: "IPv4",
      endpoints: [{ ...endpoint, targetRef: { kind: "Pod", name: "hindered-1", uid: "p3" } }],
    });
    await expect
      .poll(() => play.status("hindered"), eventually)
      .toMatchObject({
        gateways: [{ name: "hindered-1", state: "Down", reason: "net.ipv4.ip_forward is 0" }],
      });
    const degraded = (await play.status("hindered"))?.conditions?.find(({ type }) => type === "Degraded");
    expect(degraded).toMatchObject({
      status: "True",
      reason: "GatewayNotReady",
      message: "hindered-1 is not ready: net.ipv4.ip_forward is 0",
    });
    await expect.poll(() => play.events("hindered"), eventually).toContain("Warning GatewayNotReady");

    await play.patch(ENDPOINT_SLICE_RESOURCE, "hindered-v4", {
      endpoints: [{ ...endpoint, conditions: { ready: true } }],
    });
    await expect
      .poll(() => play.conditions("hindered"), eventually)
      .toMatchObject({ Degraded: "False AsExpected" });
    await play.delete(NODE_RESOURCE, name);
  });

  test("publishes the networks of the cluster, and says which gateways are in none of them", async () => {
    const published = async (): Promise<string[]> =>
      (await play.get(CONFIG_MAP_RESOURCE, CLUSTER_RANGES_CONFIG_MAP))?.data?.ranges.split("\n") ?? [];
    const [serviceCidr] = (await play.get(SERVICE_CIDR_RESOURCE, "kubernetes")).spec.cidrs;
    await expect.poll(published, eventually).toContain(serviceCidr);

    await play.createEgress("outside");
    await play.create(ENDPOINT_SLICE_RESOURCE, {
      metadata: {
        name: "outside-v4",
        labels: { "coil.cybozu.com/egress": "outside" },
        ownerReferences: [await serviceOwner("outside")],
      },
      addressType: "IPv4",
      endpoints: [{ addresses: ["198.18.7.9"], targetRef: { kind: "Pod", name: "outside-1", uid: "p2" } }],
    });
    await expect
      .poll(() => play.conditions("outside"), eventually)
      .toMatchObject({ Degraded: "True ClusterRangesIncomplete" });

    const name = `${play.namespace}-pods`;
    await play.create(NODE_RESOURCE, { metadata: { name }, spec: { podCIDRs: ["198.18.7.0/24"] } });
    const addresses = [{ type: "InternalIP", address: "198.51.100.9" }];
    await play.patch(NODE_RESOURCE, name, { status: { addresses } }, "status");
    await play.create(service, {
      metadata: { name: "reachable" },
      spec: { ports: [{ port: 80 }], externalIPs: ["203.0.113.77"] },
    });
    await expect
      .poll(published, eventually)
      .toEqual(expect.arrayContaining(["198.18.7.0/24", "198.51.100.9/32", "203.0.113.77/32"]));
    await expect
      .poll(() => play.conditions("outside"), eventually)
      .toMatchObject({ Degraded: "False AsExpected" });

    for (const ranges of ["0.0.0.0/0\n", "198.18.7.0/33\n"]) {
      await play.patch(CONFIG_MAP_RESOURCE, CLUSTER_RANGES_CONFIG_MAP, { data: { ranges } });
      await expect.poll(published, eventually).toContain("198.18.7.0/24");
    }
    await play.delete(NODE_RESOURCE, name);
    await expect.poll(published, eventually).not.toContain("198.18.7.0/24");
  });

  test("tells when pods are refused", async () => {
    await play.createEgress("refused");
    await expect.poll(() => play.kinds("refused"), eventually).toEqual(WITHOUT_BUDGET);
    const conditions = [
      {
        type: "ReplicaFailure",
        status: "True",
        reason: "FailedCreate",
        message: 'violates PodSecurity "baseline:latest"',
      },
    ];
    await play.patch(deployment, "refused", { status: { conditions } }, "status");
    await expect
      .poll(() => play.conditions("refused"), eventually)
      .toMatchObject({ Degraded: "True FailedCreate" });
    const degraded = (await play.status("refused"))?.conditions?.find(({ type }) => type === "Degraded");
    expect(degraded?.message).toContain(
      `kubectl label namespace ${play.namespace} pod-security.kubernetes.io/enforce=privileged`,
    );
    await expect.poll(() => play.events("refused"), eventually).toContain("Warning FailedCreate");
  });

  test("finds the namespaces that an Egress allows, and follows their labels", async () => {
    const label = `egress-of-${play.namespace}`;
    const mark = (value: string | null) =>
      play.patch(NAMESPACE_RESOURCE, play.namespace, { metadata: { labels: { [label]: value } } });
    const allowed = async () => (await play.status("bounded"))?.allowedNamespaces;
    await play.createEgress("bounded", { allowedNamespaces: { matchLabels: { [label]: "yes" } } });
    await expect.poll(allowed, eventually).toEqual([]);
    await mark("yes");
    await expect.poll(allowed, eventually).toEqual([play.namespace]);
    await mark(null);
    await expect.poll(allowed, eventually).toEqual([]);
    await play.patchEgress("bounded", { allowedNamespaces: null });
    await expect.poll(allowed, eventually).toBeUndefined();
  });

  test("scales by the scale subresource", async () => {
    await play.createEgress("scaled");
    await expect.poll(() => play.kinds("scaled"), eventually).toEqual(WITHOUT_BUDGET);
    await play.patch({ ...SLICE_RESOURCE, plural: "egresses" }, "scaled", { spec: { replicas: 5 } }, "scale");
    await expect
      .poll(async () => (await play.child("deployment", "scaled")).spec.replicas, eventually)
      .toBe(5);
    await expect.poll(() => play.events("scaled"), eventually).toContain("Normal Scaled");
  });

  test("removes the effect of a field that is removed", async () => {
    await play.createEgress("simplified", {
      ...ELABORATE,
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 43200 } },
    });
    await expect.poll(() => play.kinds("simplified"), eventually).toEqual(ALL);
    expect(
      (await play.child("service", "simplified")).spec.sessionAffinityConfig.clientIP.timeoutSeconds,
    ).toBe(43200);
    const before = (await play.child("service", "simplified")).spec.clusterIPs;
    await play.patchEgress("simplified", {
      podDisruptionBudget: null,
      strategy: null,
      template: null,
      sessionAffinity: "None",
      sessionAffinityConfig: null,
    });
    await expect.poll(() => play.kinds("simplified"), eventually).toEqual(WITHOUT_BUDGET);
    await expect
      .poll(async () => (await play.child("deployment", "simplified")).spec.strategy, eventually)
      .toEqual({ type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } });
    const { spec } = await play.child("deployment", "simplified");
    expect(spec.template.metadata.labels).toEqual({
      "app.kubernetes.io/name": "coil",
      "app.kubernetes.io/component": "egress",
      "app.kubernetes.io/instance": "simplified",
      "coil.cybozu.com/egress": "simplified",
    });
    expect(spec.template.spec).not.toHaveProperty("volumes");
    expect(spec.template.spec.containers).toHaveLength(1);
    await expect
      .poll(async () => (await play.child("service", "simplified")).spec, eventually)
      .toMatchObject({ sessionAffinity: "None", clusterIPs: before });
  });

  test("changes a rolling update to a recreation and back", async () => {
    await play.createEgress("strategy", { strategy: { rollingUpdate: { maxSurge: 1 } } });
    const strategy = async () => (await play.child("deployment", "strategy"))?.spec.strategy;
    await expect.poll(strategy, eventually).toEqual({
      type: "RollingUpdate",
      rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
    });
    await play.patchEgress("strategy", { strategy: { type: "Recreate", rollingUpdate: null } });
    await expect.poll(strategy, eventually).toEqual({ type: "Recreate" });
    await play.patchEgress("strategy", { strategy: null });
    await expect.poll(strategy, eventually).toMatchObject({ type: "RollingUpdate" });
  });

  test("repairs what was changed by hand", async () => {
    await play.createEgress("drifted");
    await expect.poll(() => play.kinds("drifted"), eventually).toEqual(WITHOUT_BUDGET);

    await play.patch(service, "drifted", {
      spec: { selector: { app: "other" }, sessionAffinity: "None", sessionAffinityConfig: null },
    });
    await expect
      .poll(async () => (await play.child("service", "drifted")).spec, eventually)
      .toMatchObject({ selector: { "coil.cybozu.com/egress": "drifted" }, sessionAffinity: "ClientIP" });

    await play.patch(deployment, "drifted", {
      spec: { template: { spec: { serviceAccountName: "other" } } },
    });
    await expect
      .poll(
        async () => (await play.child("deployment", "drifted")).spec.template.spec.serviceAccountName,
        eventually,
      )
      .toBe("drifted");

    const { rules } = await play.child("role", "drifted");
    await play.patch(role, "drifted", { rules: [] });
    await expect.poll(async () => (await play.child("role", "drifted")).rules, eventually).toEqual(rules);

    await play.delete(role, "drifted");
    await expect.poll(() => play.kinds("drifted"), eventually).toEqual(WITHOUT_BUDGET);

    await play.patch(service, "drifted", { metadata: { labels: { "coil.cybozu.com/egress": null } } });
    await expect
      .poll(
        async () => (await play.child("service", "drifted")).metadata.labels["coil.cybozu.com/egress"],
        eventually,
      )
      .toBe("drifted");
  });

  test("repairs what was changed by hand into what contradicts it", async () => {
    await play.createEgress("contradicted", { podDisruptionBudget: { minAvailable: 1 } });
    await expect.poll(() => play.kinds("contradicted"), eventually).toEqual(ALL);
    const { disruptionBudget } = CHILD_RESOURCES;
    await play.patch(disruptionBudget, "contradicted", { spec: { minAvailable: null, maxUnavailable: 2 } });
    const ports = [{ name: "fou", protocol: "UDP", port: 6666 }];
    await play.patch(service, "contradicted", { metadata: { labels: { team: "network" } }, spec: { ports } });
    const budget = async () => (await play.child("disruptionBudget", "contradicted")).spec;
    await expect.poll(budget, eventually).toMatchObject({ minAvailable: 1 });
    expect(await budget()).not.toHaveProperty("maxUnavailable");
    const repaired = async () => (await play.child("service", "contradicted")).spec.ports;
    await expect.poll(repaired, eventually).toMatchObject([{ name: "fou", port: 5555 }]);
    expect((await play.child("service", "contradicted")).metadata.labels).toHaveProperty("team");
  });

  test("takes nothing from others where it is not what they have set that the API server refuses", async () => {
    await play.createEgress("restarted");
    await expect.poll(() => play.kinds("restarted"), eventually).toEqual(WITHOUT_BUDGET);
    const restartedAt = "2026-01-02T03:04:05Z";
    const annotations = { "kubectl.kubernetes.io/restartedAt": restartedAt };
    await play.patch(deployment, "restarted", { spec: { template: { metadata: { annotations } } } });
    const version = async () => (await play.child("deployment", "restarted")).metadata.resourceVersion;
    const before = await version();
    const volumeMounts = [{ name: "lacking", mountPath: "/lacking" }];
    const template = { spec: { containers: [{ name: "egress", volumeMounts }] } };
    await play.patchEgress("restarted", { template });
    const conditions = () => play.conditions("restarted");
    await expect.poll(conditions, eventually).toMatchObject({ Degraded: "True ChildRefused" });
    expect(await version()).toBe(before);
    await play.patchEgress("restarted", { template: null });
    await expect.poll(conditions, eventually).toMatchObject({ Degraded: "False AsExpected" });
    await play.patchEgress("restarted", { replicas: 2 });
    const spec = async () => (await play.child("deployment", "restarted")).spec;
    await expect.poll(spec, eventually).toMatchObject({ replicas: 2 });
    expect((await spec()).template.metadata.annotations).toMatchObject(annotations);
  });

  test("leaves its Service the trafficDistribution that somebody has set", async () => {
    await play.createEgress("distributed");
    await expect.poll(() => play.kinds("distributed"), eventually).toEqual(WITHOUT_BUDGET);
    const trafficDistribution = "PreferSameNode";
    await play.patch(service, "distributed", { spec: { trafficDistribution } });
    await play.patchEgress("distributed", { sessionAffinity: "None" });
    const spec = async () => (await play.child("service", "distributed")).spec;
    await expect.poll(spec, eventually).toMatchObject({ sessionAffinity: "None" });
    expect(await spec()).toMatchObject({ trafficDistribution });
  });

  test("leaves an object alone that has the name of a child, and says so", async () => {
    const foreign = {
      metadata: { name: "taken" },
      spec: { ports: [{ port: 80 }], selector: { app: "web" } },
    };
    await play.create(service, foreign);
    await play.createEgress("taken");
    await expect
      .poll(() => play.conditions("taken"), eventually)
      .toMatchObject({ Degraded: "True NameConflict" });
    await expect.poll(() => play.events("taken"), eventually).toContain("Warning NameConflict");
    const untouched = await play.child("service", "taken");
    expect(untouched.metadata).not.toHaveProperty("ownerReferences");
    expect(untouched.spec.selector).toEqual({ app: "web" });
    expect((await play.status("taken"))?.serviceIPs).toEqual([]);

    await play.delete(service, "taken");
    await play.patchEgress("taken", { replicas: 2 });
    await expect
      .poll(() => play.conditions("taken"), eventually)
      .toMatchObject({ Degraded: "False AsExpected" });
  });

  test("waits for the children of a former Egress of that name to be collected", async () => {
    await play.createEgress("again");
    await expect.poll(() => play.kinds("again"), eventually).toEqual(WITHOUT_BUDGET);
    const former = (await play.child("service", "again")).metadata.uid;
    await play.deleteEgress("again");
    await play.createEgress("again");
    await expect
      .poll(() => play.conditions("again"), eventually)
      .toMatchObject({
        Progressing: "True Creating",
        Degraded: "False AsExpected",
      });
    expect((await play.child("service", "again")).metadata.uid).toBe(former);

    // This API server has no garbage collector.
    for (const kind of WITHOUT_BUDGET) await play.delete(CHILD_RESOURCES[kind], "again");
    await expect.poll(() => play.kinds("again"), eventually).toEqual(WITHOUT_BUDGET);
    await expect.poll(async () => (await play.status("again"))?.serviceIPs ?? [], eventually).not.toEqual([]);
  });

  test("does not let one Egress that the API server refuses hold up others", async () => {
    const containers = [{ name: "egress" }, { name: "no-image" }];
    await play.createEgress("bad", { template: { spec: { containers } } });
    await play.createEgress("good");
    await expect.poll(() => play.kinds("good"), eventually).toEqual(WITHOUT_BUDGET);
    await expect
      .poll(() => play.conditions("bad"), eventually)
      .toMatchObject({ Degraded: "True ChildRefused" });
    const degraded = (await play.status("bad"))?.conditions?.find(({ type }) => type === "Degraded");
    expect(degraded?.message).toContain("spec.template.spec.containers[1].image");
  });

  test("removes the slices of a node that is gone, and no others", async () => {
    const names = ["gone", "there"].map((node) => `${play.namespace}-${node}`);
    for (const name of names) {
      await play.transport.request({ method: "POST", path: "/api/v1/nodes", body: { metadata: { name } } });
      await play.createSlice({ name }, name);
    }
    const [gone = "", there = ""] = names;
    await play.transport.request({ method: "DELETE", path: `/api/v1/nodes/${gone}` });
    await expect.poll(() => play.get(SLICE_RESOURCE, gone), eventually).toBeUndefined();
    expect(await play.get(SLICE_RESOURCE, there)).toBeDefined();

    // An agent that outlives its node for a while is not fought with.
    await play.createSlice({ name: gone }, gone);
    await play.transport.request({ method: "DELETE", path: `/api/v1/nodes/${there}` });
    await expect.poll(() => play.get(SLICE_RESOURCE, there), eventually).toBeUndefined();
    expect(await play.get(SLICE_RESOURCE, gone)).toBeDefined();
  });
});

describe("slices of an Egress that was made anew", () => {
  test("are removed; those of the new one are not", async () => {
    using elsewhere = await Playground.create(inject("kubeconfig"));
    const { transport, namespace } = elsewhere;
    const labels = { "coil.cybozu.com/egress": "anew" };
    await elsewhere.create(NODE_RESOURCE, { metadata: { name: namespace } });
    const createSlice = async (name: string, { metadata: { uid } }: Egress) => {
      const owner = { apiVersion: "coil.cybozu.com/v2", kind: "Egress", name: "anew", uid, controller: true };
      await elsewhere.createSlice({ name, labels, ownerReferences: [owner] }, namespace);
    };
    await using _ = RunningOperator.start(confinedTo(namespace, transport), namespace);
    await createSlice("former", await elsewhere.createEgress("anew"));
    await expect.poll(() => elsewhere.status("anew"), eventually).toHaveProperty("observedGeneration");
    await elsewhere.deleteEgress("anew");
    await createSlice("present", await elsewhere.createEgress("anew"));
    await expect.poll(() => elsewhere.get(SLICE_RESOURCE, "former"), eventually).toBeUndefined();
    expect(await elsewhere.get(SLICE_RESOURCE, "present")).toBeDefined();
  });
});

describe("operators that come and go", () => {
  let other: Playground;

  beforeAll(async () => {
    other = await Playground.create(inject("kubeconfig"));
  });

  afterAll(() => other.transport.close());

  test("write nothing for what is as it should be", async () => {
    await using first = RunningOperator.start(other.transport, other.namespace);
    await other.createEgress("elaborate", ELABORATE);
    await other.createEgress("plain");
    await expect.poll(() => other.kinds("elaborate"), eventually).toEqual(ALL);
    for (const name of ["elaborate", "plain"]) {
      await expect
        .poll(() => other.conditions(name), eventually)
        .toMatchObject({ Progressing: "True RollingOut" });
    }
    await first.stop();

    await using second = RunningOperator.start(other.transport, other.namespace, "operator-1");
    await expect.poll(() => second.isReady, eventually).toBe(true);
    // Its turn comes after all that was there before.
    await other.createEgress("last");
    await expect
      .poll(() => other.conditions("last"), eventually)
      .toMatchObject({ Degraded: "False AsExpected" });
    const inNamespace = second.writes.filter((write) => write.includes(`/namespaces/${other.namespace}/`));
    expect(inNamespace.filter((write) => !/\/last(\/status)?$/.test(write))).toEqual([]);
  });

  test("take over from each other", async () => {
    await using leader = RunningOperator.start(other.transport, other.namespace, "leader");
    await other.createEgress("before");
    await expect.poll(() => other.kinds("before"), eventually).toEqual(WITHOUT_BUDGET);
    await using standby = RunningOperator.start(other.transport, other.namespace, "standby");
    await expect.poll(() => standby.isReady, eventually).toBe(true);
    expect(standby.writes).toEqual([]);

    await leader.stop();
    await other.createEgress("after");
    await expect.poll(() => other.kinds("after"), eventually).toEqual(WITHOUT_BUDGET);
    expect(standby.writes.length).toBeGreaterThan(0);
  });

  test("finish what another has left undone", async () => {
    await other.createEgress("half-done");
    await using operator = RunningOperator.start(other.transport, other.namespace, "finisher");
    await expect.poll(() => other.kinds("half-done"), eventually).toEqual(WITHOUT_BUDGET);
    expect(operator.isReady).toBe(true);
  });
});
