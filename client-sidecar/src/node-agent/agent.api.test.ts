import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import {
  CLUSTER_RANGES_CONFIG_MAP,
  clusterRangesData,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  EgressClientSlice,
  SLICE_RESOURCE,
  sliceName,
} from "@egress-nat/crds";
import {
  CONFIG_MAP_RESOURCE,
  createTransport,
  ENDPOINT_SLICE_RESOURCE,
  loadCredentials,
  NAMESPACE_RESOURCE,
  POD_RESOURCE,
  type Resource,
  ResourceClient,
  resourcePath,
  type Transport,
} from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { asEarlierRelease, NO_NETWORK } from "@egress-nat/test/bed/api/earlier-release";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from "vitest";
import type { PodEvent } from "../client/pod.ts";
import { NodeState } from "../records/node-state.ts";
import { addRequest } from "../testing/add-request.ts";
import { CompiledPlugin } from "../testing/compiled-plugin.ts";
import { FakeGateways } from "../testing/fake-gateways.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { locationsIn } from "../testing/locations.ts";
import {
  createObject,
  createServedEgress,
  gatewayEndpoint,
  patchObject,
  serviceOwner,
} from "../testing/served-egress.ts";
import { Agent } from "./agent.ts";

const NODE = "node-1";
const ACKNOWLEDGE_DEADLINE_MS = 3_000;
const GATEWAY = "198.51.100.1";
const OTHER_GATEWAY = "198.51.100.2";
const SILENT_GATEWAY = "198.51.100.77";

const logger = createLogger({ name: "test", level: "silent" });
const parseSlice = (raw: unknown) => EgressClientSlice.parse(raw);

let transport: Transport;
let slices: ResourceClient<EgressClientSlice>;
let plugin: CompiledPlugin;
let folder: string;
let state: NodeState;
let namespace: string;
let gateways: FakeGateways;
let networks: FakeNetworks;
let events: PodEvent[];
let metrics: Registry;
let agent: { readonly stop: () => Promise<void> } | undefined;

beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger });
  slices = new ResourceClient(transport, SLICE_RESOURCE, parseSlice);
  plugin = await CompiledPlugin.compile();
});

afterAll(() => {
  transport.close();
  plugin.remove();
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-agent-"));
  mkdirSync(join(folder, "netns"));
  state = new NodeState(locationsIn(folder), logger);
  namespace = `agent-${Math.random().toString(36).slice(2, 10)}`;
  await create(NAMESPACE_RESOURCE, { metadata: { name: namespace } });
  await create(CONFIG_MAP_RESOURCE, {
    metadata: clusterRangesMetadata(),
    data: clusterRangesData(["10.96.0.0/16"]),
  });
  networks = new FakeNetworks();
  events = [];
  gateways = new FakeGateways();
  await gateways.start(transport, namespace, logger);
  await gateways.add(GATEWAY);
});

afterEach(async () => {
  await agent?.stop();
  agent = undefined;
  await gateways.close();
  await transport.request({ method: "DELETE", path: resourcePath(EGRESS_RESOURCE, { namespace }) });
  await transport.request({ method: "DELETE", path: resourcePath(SLICE_RESOURCE, { namespace }) });
  rmSync(folder, { recursive: true });
});

describe("a client's ADD", () => {
  it("returns when the gateways know the client", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    const added = await add("c1");
    expect(added).toEqual({ exitCode: 0, result: prevResult("c1") });
    const slice = await slices.get({ namespace, name: sliceName("nat", NODE) });
    expect(slice).toMatchObject({
      metadata: { labels: { [EGRESS_LABEL]: "nat" }, ownerReferences: [{ kind: "Egress", name: "nat" }] },
      nodeName: NODE,
      clientCount: 1,
      clients: [
        { namespace: "apps", name: "pod-c1", uid: "uid-c1", addresses: [addressOf("c1"), "fd00:244::c1"] },
      ],
    });
    expect(networks.applied.get(netnsOf("c1"))).toMatchObject({
      uplink: "eth0",
      egresses: [
        {
          name: `${namespace}/nat`,
          destinations: ["0.0.0.0/0"],
          gateways: [
            { ipv4: "10.96.0.10" },
            { ipv4: "10.96.0.10", flows: "existing" },
            { ipv4: GATEWAY, flows: "existing" },
          ],
          peers: ["10.96.0.10", GATEWAY],
          port: 5555,
        },
      ],
      clusterRanges: ["10.96.0.0/16"],
    });
  });

  it("is watched by nobody before it returns", async () => {
    await createEgress("nat", [GATEWAY]);
    gateways.setStuck(GATEWAY, true);
    await startAgent();
    const added = add("c1");
    await eventually(() => expect(networks.applied.has(netnsOf("c1"))).toBe(true));
    await pause(1_500);
    expect([...networks.watched]).toEqual([]);
    gateways.setStuck(GATEWAY, false);
    expect((await added).exitCode).toBe(0);
    await eventually(() => expect([...networks.watched]).toEqual([netnsOf("c1")]));
  });

  it("works for many pods at once", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    const ids = Array.from({ length: 20 }, (_, index) => `c${index + 1}`);
    const added = await Promise.all(ids.map((id) => add(id)));
    expect(added.map(({ exitCode }) => exitCode)).toEqual(ids.map(() => 0));
    expect(await sliceAddresses("nat")).toHaveLength(40);
  });

  it("says which Egress does not exist, and works once it does", async () => {
    await startAgent();
    expect(await add("c1")).toMatchObject({
      exitCode: 1,
      result: {
        code: 11,
        msg: `Egress ${namespace}/nat does not exist`,
        details: expect.stringMatching(/kubectl/),
      },
    });
    await createEgress("nat", [GATEWAY]);
    await eventually(async () => expect((await add("c1")).exitCode).toBe(0));
  });

  it("says which Egress has no gateway", async () => {
    await createEgress("nat", []);
    await startAgent();
    expect(await add("c1")).toMatchObject({
      exitCode: 1,
      result: { code: 11, msg: `Egress ${namespace}/nat has no gateway that is ready` },
    });
    expect(state.recordIds()).toEqual([]);
  });

  it("is refused where the Egress does not allow the pod's namespace, until it does", async () => {
    await createEgress("nat", [GATEWAY], { allowedNamespaces: {} });
    await allow("nat", ["payments"]);
    await startAgent();
    expect(await add("c1")).toMatchObject({
      exitCode: 1,
      result: {
        code: 11,
        msg: `pods of namespace apps may not use Egress ${namespace}/nat: its allowedNamespaces do not select it`,
        details: expect.stringMatching(/label/),
      },
    });
    expect(state.recordIds()).toEqual([]);
    await allow("nat", ["apps"]);
    await eventually(async () => expect((await add("c1")).exitCode).toBe(0));
  });

  it("does not wait for gateways where the Egress does not ask for it", async () => {
    await createEgress("nat", [], { clientStartup: "Immediate" });
    await startAgent();
    expect((await add("c1")).exitCode).toBe(0);
    expect(networks.applied.get(netnsOf("c1"))?.egresses[0]?.gateways[0]).toEqual({});
  });

  it("leaves out a gateway that does not answer, and says so in an event", async () => {
    await createEgress("nat", [GATEWAY, SILENT_GATEWAY], { gatewaySelection: "Agent" });
    await startAgent();
    expect((await add("c1")).exitCode).toBe(0);
    expect(events).toEqual([
      {
        type: "Warning",
        reason: "GatewayNotAnswering",
        message: expect.stringMatching(/gateway-198\.51\.100\.77/),
      },
    ]);
  });

  it("waits for a silent gateway that the Service goes on picking, until it is not ready", async () => {
    const slice = await createEgress("nat", [GATEWAY, SILENT_GATEWAY]);
    await startAgent(60_000);
    const added = add("c1");
    // Longer than an agent that picks by itself waits for it.
    await pause(3_000);
    const endpoints = [endpoint(GATEWAY), { ...endpoint(SILENT_GATEWAY), conditions: { ready: false } }];
    await patch(ENDPOINT_SLICE_RESOURCE, slice, { endpoints });
    expect(await added).toMatchObject({ exitCode: 0 });
    expect(events).toEqual([]);
  });

  it("fails when no gateway answers, and names the likely cause", async () => {
    await createEgress("nat", [SILENT_GATEWAY]);
    await startAgent();
    expect(await add("c1")).toMatchObject({
      result: {
        code: 11,
        msg: expect.stringMatching(/no gateway of Egress .*nat answered the heartbeat within 3 s/),
        details: expect.stringMatching(/NetworkPolicy/),
      },
    });
  });

  it("that a gateway does not take in is undone, and its address stays out of use until that gateway lets go", async () => {
    await gateways.add(OTHER_GATEWAY);
    await createEgress("nat", [GATEWAY, OTHER_GATEWAY]);
    await startAgent();
    await add("c1");
    gateways.setStuck(OTHER_GATEWAY, true);
    expect(await add("c2")).toMatchObject({
      result: {
        code: 11,
        msg: expect.stringMatching(/did not acknowledge the pod within 3 s: gateway-198\.51\.100\.2/),
      },
    });
    expect(networks.applied.has(netnsOf("c2"))).toBe(false);
    await eventually(async () =>
      expect(await sliceAddresses("nat")).toEqual([addressOf("c1"), "fd00:244::c1"]),
    );
    expect(await run("ADD", "c2", {})).toMatchObject({ exitCode: 1, result: { code: 11 } });
    gateways.setStuck(OTHER_GATEWAY, false);
    await eventually(() => expect(state.tombstones()).toEqual([]));
    expect(await run("ADD", "c2", {})).toMatchObject({ exitCode: 0 });
  });

  it("whose network namespace cannot be programmed is undone", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    networks.failure = new Error("no such device");
    expect(await add("c1")).toMatchObject({
      exitCode: 1,
      result: { msg: expect.stringMatching(/no such device/) },
    });
    await eventually(async () => expect(await sliceAddresses("nat")).toEqual([]));
    await eventually(() => expect(state.tombstones()).toEqual([]));
  });

  it("says on a pod that an annotation was meant for it, by the look of its key, and starts it as no client", async () => {
    await startAgent();
    const added = await run("ADD", "c1", { "egres.coil.cybozu.com/internet": "nat", "example.com/a": "b" });
    expect(added).toEqual({ exitCode: 0, result: prevResult("c1") });
    expect(events).toEqual([
      {
        type: "Warning",
        reason: "AnnotationNotUnderstood",
        message: expect.stringMatching(
          /: egres\.coil\.cybozu\.com\/internet; write egress\.coil\.cybozu\.com\/<namespace/,
        ),
      },
    ]);
    expect(state.recordIds()).toEqual([]);
  });

  it("refuses an annotation that names nothing, and a pod without an address of the Egress's family", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    expect(await run("ADD", "c1", { [`egress.coil.cybozu.com/${namespace}`]: "a,,b" })).toMatchObject({
      result: { code: 100, msg: expect.stringMatching(/does not name an Egress/) },
    });
    const onlyV6 = { ...prevResult("c1"), ips: [{ address: "fd00:244::1/64" }] };
    expect(await run("ADD", "c1", annotations("nat"), { prevResult: onlyV6 })).toMatchObject({
      result: {
        code: 100,
        msg: expect.stringMatching(/only IPv4 destinations, but the pod has only IPv6 addresses/),
      },
    });
    const noAddress = { ...prevResult("c1"), ips: [] };
    expect(await run("ADD", "c1", annotations("nat"), { prevResult: noAddress })).toMatchObject({
      result: { code: 100, msg: expect.stringMatching(/the plugins before this one gave it no address/) },
    });
    expect(await run("ADD", "c2", {}, { prevResult: noAddress })).toEqual({ exitCode: 0, result: noAddress });
  });

  it("finds the annotations itself where the container runtime does not pass them", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    const metadata = { namespace, name: "pod-c1", annotations: annotations("nat") };
    await create(POD_RESOURCE, {
      metadata,
      spec: { containers: [{ name: "app", image: "app" }], serviceAccountName: "default" },
    });
    const added = await run("ADD", "c1", undefined, { podNamespace: namespace });
    expect(added).toEqual({ exitCode: 0, result: prevResult("c1") });
    expect(await sliceAddresses("nat")).toContain(addressOf("c1"));
  });

  it("says of annotations that it looked up which look like its own", async () => {
    await startAgent();
    const spec = { containers: [{ name: "app", image: "app" }], serviceAccountName: "default" };
    const metadata = { namespace, name: "pod-c1", annotations: { "egres.coil.cybozu.com/internet": "nat" } };
    await create(POD_RESOURCE, { metadata, spec });
    expect((await run("ADD", "c1", undefined, { podNamespace: namespace })).exitCode).toBe(0);
    expect(events).toMatchObject([{ reason: "AnnotationNotUnderstood" }]);
  });

  it("lets a gateway forward packets", async () => {
    await createEgress("nat", []);
    await startAgent();
    const gateway = { "coil.cybozu.com/egress-gateway": "true" };
    expect((await run("ADD", "c1", gateway, { podNamespace: namespace })).exitCode).toBe(0);
    expect(networks.gateways).toEqual(new Set([netnsOf("c1")]));
  });

  it("refuses a gateway that would be a client", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    const both = { "coil.cybozu.com/egress-gateway": "true", ...annotations("nat") };
    expect(await run("ADD", "c1", both, { podNamespace: namespace })).toMatchObject({
      exitCode: 1,
      result: { code: 100, msg: expect.stringMatching(/a gateway cannot be a client/) },
    });
    expect(networks.gateways).toEqual(new Set());
  });

  it("lets nobody forward packets by a gateway's annotation where there is no Egress", async () => {
    await createEgress("nat", []);
    await startAgent();
    expect(await run("ADD", "c1", { "coil.cybozu.com/egress-gateway": "true" })).toMatchObject({
      exitCode: 1,
      result: { code: 11, msg: expect.stringMatching(/apps\/pod-c1 .*there is no Egress in its namespace/) },
    });
    expect(networks.gateways).toEqual(new Set());
  });
});

describe("a client's DEL", () => {
  it("withdraws the client before it returns", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await Promise.all([add("c1"), add("c2")]);
    expect((await run("DEL", "c1", annotations("nat"))).exitCode).toBe(0);
    expect(await sliceAddresses("nat")).toEqual([addressOf("c2"), "fd00:244::c2"]);
    expect(state.tombstones()).toEqual([]);
    await run("DEL", "c2", annotations("nat"));
    expect(await sliceAddresses("nat")).toEqual([]);
  });

  it("succeeds while a gateway is stuck, and keeps the address out of use until it is not", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    gateways.setStuck(GATEWAY, true);
    expect((await run("DEL", "c1", {})).exitCode).toBe(0);
    expect(state.tombstones()).toEqual([addressOf("c1"), "fd00:244::c1"]);
    gateways.setStuck(GATEWAY, false);
    await eventually(() => expect(state.tombstones()).toEqual([]));
  });

  it("while the agent is down is made good at its next start", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await agent?.stop();
    expect((await run("DEL", "c1", {})).exitCode).toBe(0);
    expect(await run("ADD", "c1", {})).toMatchObject({ exitCode: 1, result: { code: 11 } });
    expect(await sliceAddresses("nat")).toContain(addressOf("c1"));
    await startAgent();
    await eventually(() => expect(state.tombstones()).toEqual([]));
    expect((await run("ADD", "c1", {})).exitCode).toBe(0);
  });
});

describe("a second network of a pod", () => {
  const storage = (id: string) => ({
    network: "storage",
    ifname: "net1",
    prevResult: {
      cniVersion: "1.0.0",
      interfaces: [{ name: "net1", sandbox: netnsOf(id) }],
      ips: [{ address: `192.0.2.${id.slice(1)}/24`, interface: 0 }],
    },
  });

  it("comes and goes, and the client of the first stays", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    const own = [addressOf("c1"), "fd00:244::c1"];
    expect((await run("ADD", "c1", annotations("nat"), storage("c1"))).exitCode).toBe(0);
    expect(await sliceAddresses("nat")).toEqual([...own, "192.0.2.1"]);
    expect(networks.applied.get(netnsOf("c1"))).toMatchObject({ uplink: "eth0" });
    await agent?.stop();
    await startAgent();
    expect(await run("CHECK", "c1", annotations("nat"), storage("c1"))).toMatchObject({ exitCode: 0 });
    expect((await run("DEL", "c1", annotations("nat"), storage("c1"))).exitCode).toBe(0);
    expect(await sliceAddresses("nat")).toEqual(own);
    expect(await run("CHECK", "c1", annotations("nat"))).toMatchObject({ exitCode: 0 });
    await eventually(() => expect(state.tombstones()).toEqual([]));
  });

  it("has a GC of its own", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await run("ADD", "c1", annotations("nat"), storage("c1"));
    const gc = { ...storage("c1"), cniVersion: "1.1.0", "cni.dev/valid-attachments": null };
    expect((await run("GC", "none", undefined, gc)).exitCode).toBe(0);
    expect(await sliceAddresses("nat")).toEqual([addressOf("c1"), "fd00:244::c1"]);
  });
});

describe("an upgrade of the agent", () => {
  it("leaves the clients alone that the version before has written down", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await agent?.stop();
    // As version 0.1.0 has left them: named for the container alone, which the address's file names as well.
    const { runDirectory, stateDirectory } = locationsIn(folder);
    const former = join(runDirectory, "clients/c1.json");
    renameSync(join(runDirectory, "clients/c1:eth0:pods.json"), former);
    rewrite(former, ({ network: _, ...record }) => record);
    for (const address of state.trustedAddresses()) {
      rewrite(join(stateDirectory, "addresses", address), ({ record: _, ...trusted }) => ({
        ...trusted,
        containerId: "c1",
      }));
    }
    await startAgent();
    expect(state.tombstones()).toEqual([]);
    expect(await sliceAddresses("nat")).toEqual([addressOf("c1"), "fd00:244::c1"]);
    expect(await run("CHECK", "c1", annotations("nat"))).toMatchObject({ exitCode: 0 });
    expect((await run("DEL", "c1", annotations("nat"))).exitCode).toBe(0);
    expect(await sliceAddresses("nat")).toEqual([]);
    await eventually(() => expect(state.trustedAddresses()).toEqual([]));
  });
});

describe("after a reboot of the node", () => {
  it("addresses of former clients are given to no pod, with or without an agent, until all gateways have let go", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await agent?.stop();
    rmSync(locationsIn(folder).runDirectory, { recursive: true });
    networks.gone.add(netnsOf("c1"));
    const refused = { exitCode: 1, result: { code: 11, msg: expect.stringMatching(addressOf("c1")) } };
    const heir = () => run("ADD", "heir", {}, { prevResult: prevResult("c1") });

    expect((await run("DEL", "c1", {})).exitCode).toBe(0);
    expect(await heir()).toMatchObject(refused);
    gateways.setStuck(GATEWAY, true);
    await startAgent();
    await eventually(async () => expect(await sliceAddresses("nat")).toEqual([]));
    expect(await heir()).toMatchObject(refused);
    gateways.setStuck(GATEWAY, false);
    await eventually(async () => expect((await heir()).exitCode).toBe(0));
  });
});

describe("a running client", () => {
  it("is repaired when somebody else changes its network namespace, and its pod is told", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await eventually(() => {
      if (events.length === 0) networks.wipe(netnsOf("c1"));
      expect(events).toEqual([
        {
          type: "Warning",
          reason: "NetworkRepaired",
          message: expect.stringContaining("route 192.0.2.0/24 is missing"),
        },
      ]);
    });
    await eventually(() => expect(networks.applied.has(netnsOf("c1"))).toBe(true));
    await run("DEL", "c1", annotations("nat"));
    await eventually(() => expect([...networks.watched]).toEqual([]));
  });

  it("has what its guard refuses in the agent's metrics", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    networks.refuse(netnsOf("c1"), { rejected: 3, unheard: 1 });
    await add("c1");
    await eventually(async () => {
      const text = await metrics.metrics();
      expect(text).toContain('egress_nat_agent_refused_packets_total{reason="rejected"} 3');
      expect(text).toContain('egress_nat_agent_refused_packets_total{reason="unheard"} 1');
    });
  });

  it("shares its address with nobody, though the runtime has forgotten it", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    const heir = await run("ADD", "heir", annotations("nat"), { prevResult: prevResult("c1") });
    expect(heir).toMatchObject({
      exitCode: 1,
      result: { code: 11, msg: expect.stringMatching(/10\.244\.0\.1 belongs or belonged to a client/) },
    });
    const { runDirectory } = locationsIn(folder);
    const passedByPlugin = addRequest({
      ...{ containerId: "heir", netns: netnsOf("heir"), addresses: [addressOf("c1")] },
      pod: { namespace: "apps", name: "heir", uid: "uid-heir" },
      annotations: annotations("nat"),
    });
    const socket = connect(join(runDirectory, "agent.sock"));
    socket.write(`${JSON.stringify(passedByPlugin)}\n`);
    expect(await text(socket)).toMatch(/10\.244\.0\.1 belongs or belonged to a client/);
    expect(await run("CHECK", "c1", annotations("nat"))).toMatchObject({ exitCode: 0 });
  });

  it("follows its Egress and its gateways", async () => {
    const endpoints = await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    const config = () => networks.applied.get(netnsOf("c1"))?.egresses[0];
    await patch(EGRESS_RESOURCE, "nat", { spec: { destinations: ["192.0.2.0/24"] } });
    await eventually(() => expect(config()).toMatchObject({ destinations: ["192.0.2.0/24"] }));
    await patch(ENDPOINT_SLICE_RESOURCE, endpoints, {
      endpoints: [endpoint(GATEWAY), endpoint(OTHER_GATEWAY)],
    });
    await eventually(() => expect(config()).toMatchObject({ peers: ["10.96.0.10", GATEWAY, OTHER_GATEWAY] }));
    await patch(ENDPOINT_SLICE_RESOURCE, endpoints, { endpoints: [] });
    await eventually(() =>
      expect(config()).toMatchObject({
        gateways: [{}, { ipv4: "10.96.0.10", flows: "existing" }],
        destinations: ["192.0.2.0/24"],
      }),
    );
  });

  describe("whose gateways the agent picks", () => {
    const gatewaysOf = () => networks.applied.get(netnsOf("c1"))?.egresses[0]?.gateways ?? [];
    /** Where its new flows begin. */
    const picked = () => gatewaysOf().flatMap(({ ipv4, flows }) => (flows === undefined ? [ipv4] : []));
    const service = { ipv4: "10.96.0.10", flows: "existing" };
    let endpoints: string;

    beforeEach(async () => {
      await gateways.add(OTHER_GATEWAY);
      endpoints = await createEgress("nat", [GATEWAY, OTHER_GATEWAY], { gatewaySelection: "Agent" });
      await startAgent();
      await add("c1");
    });

    it("has one of them, whoever was asked before", async () => {
      const [own] = picked();
      expect([GATEWAY, OTHER_GATEWAY]).toContain(own);
      expect(gatewaysOf()).toContainEqual(service);
      await patch(EGRESS_RESOURCE, "nat", { spec: { gatewaySelection: "Service" } });
      await eventually(() => expect(picked()).toEqual(["10.96.0.10"]));
      expect(gatewaysOf()).toContainEqual({ ipv4: own, flows: "existing" });
      await patch(EGRESS_RESOURCE, "nat", { spec: { gatewaySelection: "Agent" } });
      await eventually(() => expect(picked()).toEqual([own]));
    });

    it("leaves one that terminates, or does not answer, with its new flows, and comes back", async () => {
      const [own = ""] = picked();
      const other = own === GATEWAY ? OTHER_GATEWAY : GATEWAY;
      await gateways.remove(own);
      await eventually(() => expect(picked()).toEqual([other]));
      expect(gatewaysOf()).toContainEqual({ ipv4: own, flows: "existing" });
      await gateways.add(own);
      await eventually(() => expect(picked()).toEqual([own]));
      const terminating = { ready: false, serving: true, terminating: true };
      await patch(ENDPOINT_SLICE_RESOURCE, endpoints, {
        endpoints: [{ ...endpoint(own), conditions: terminating }, endpoint(other)],
      });
      await eventually(() => expect(picked()).toEqual([other]));
      expect(gatewaysOf()).toContainEqual({ ipv4: own, flows: "spare" });
    });

    it("loses the flows of one through whose tunnel nothing comes any more", async () => {
      const [own = ""] = picked();
      networks.dead.add(own);
      await gateways.remove(own);
      await eventually(() => expect(gatewaysOf().map(({ ipv4 }) => ipv4)).not.toContain(own));
      expect(picked()).toHaveLength(1);
    });

    it("is reported where it does not answer, and reported no longer once it does", async () => {
      const [own = ""] = picked();
      const name = `gateway-${own}`;
      const told = [{ name, addresses: [own], state: "Ready" }];
      await patch(EGRESS_RESOURCE, "nat", { status: { clients: 1, gateways: told } }, "status");
      const slice = () => slices.get({ namespace, name: sliceName("nat", NODE) });
      const { clients } = await slice();
      await gateways.remove(own);
      const report = { gateway: name, since: expect.any(String) };
      await eventually(async () =>
        expect((await slice()).suspects).toEqual([{ ...report, state: "Suspect" }]),
      );
      networks.dead.add(own);
      await eventually(async () => expect((await slice()).suspects).toEqual([{ ...report, state: "Down" }]));
      expect((await slice()).clients).toEqual(clients);
      await gateways.add(own);
      await eventually(async () => expect(await slice()).not.toHaveProperty("suspects"));
    });
  });

  it("takes no gateway from an EndpointSlice that the Service of its Egress does not own", async () => {
    await createEgress("nat", [GATEWAY]);
    const owner = serviceOwner("nat");
    for (const [name, ownerReferences] of [
      ["unowned", []],
      ["of-former-service", [{ ...owner, uid: "former" }]],
    ] as const) {
      await create(ENDPOINT_SLICE_RESOURCE, {
        metadata: { namespace, name, labels: { [EGRESS_LABEL]: "nat" }, ownerReferences },
        addressType: "IPv4",
        endpoints: [endpoint(OTHER_GATEWAY)],
      });
    }
    await startAgent();
    await add("c1");
    const peers = () => networks.applied.get(netnsOf("c1"))?.egresses[0]?.peers;
    expect(peers()).toEqual(["10.96.0.10", GATEWAY]);
    // As an operator left it that does not say which Service it is: whose it is by name counts.
    await patch(EGRESS_RESOURCE, "nat", { status: { serviceUID: null } }, "status");
    await eventually(() => expect(peers()).toEqual(["10.96.0.10", GATEWAY, OTHER_GATEWAY]));
    // As the operator leaves it where the Service of that name is somebody else's.
    await patch(EGRESS_RESOURCE, "nat", { status: { serviceIPs: [] } }, "status");
    await eventually(() => expect(peers()).toEqual([]));
  });

  it("follows the networks of the cluster, and keeps to what was last known of them", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    const { name } = clusterRangesMetadata();
    const ranges = () => networks.applied.get(netnsOf("c1"))?.clusterRanges;
    await patch(CONFIG_MAP_RESOURCE, name, { data: clusterRangesData(["10.96.0.0/16", "198.51.100.0/24"]) });
    await eventually(() => expect(ranges()).toEqual(["10.96.0.0/16", "198.51.100.0/24"]));
    await transport.request({
      method: "DELETE",
      path: resourcePath(CONFIG_MAP_RESOURCE, clusterRangesMetadata()),
    });
    await patch(EGRESS_RESOURCE, "nat", { spec: { destinations: ["192.0.2.0/24"] } });
    await eventually(() =>
      expect(networks.applied.get(netnsOf("c1"))?.egresses[0]?.destinations).toEqual(["192.0.2.0/24"]),
    );
    expect(ranges()).toEqual(["10.96.0.0/16", "198.51.100.0/24"]);
  });

  it("loses its gateway, closed and with an event, when its namespace is allowed no longer", async () => {
    await createEgress("nat", [GATEWAY], { allowedNamespaces: {} });
    await allow("nat", ["apps"]);
    await startAgent();
    expect((await add("c1")).exitCode).toBe(0);
    const config = () => networks.applied.get(netnsOf("c1"))?.egresses[0];
    await allow("nat", ["payments"]);
    const closed = { destinations: ["0.0.0.0/0"], gateways: [{}], peers: [] };
    await eventually(() => expect(config()).toMatchObject(closed));
    expect(events).toEqual([
      {
        type: "Warning",
        reason: "EgressNotAllowed",
        message: expect.stringMatching(`pods of namespace apps may not use ${namespace}/nat`),
      },
    ]);
    await allow("nat", ["apps", "payments"]);
    await eventually(() => expect(config()?.gateways).toContainEqual({ ipv4: "10.96.0.10" }));
  });

  it("stays guarded when its Egress is gone, also after a restart of the agent", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await transport.request({
      method: "DELETE",
      path: resourcePath(EGRESS_RESOURCE, { namespace, name: "nat" }),
    });
    const guarded = { destinations: ["0.0.0.0/0"], gateways: [{}] };
    await eventually(() => expect(networks.applied.get(netnsOf("c1"))?.egresses[0]).toMatchObject(guarded));
    await agent?.stop();
    networks.applied.clear();
    await startAgent();
    await eventually(() => expect(networks.applied.get(netnsOf("c1"))?.egresses[0]).toMatchObject(guarded));
  });

  it("goes on when its Egress is not understood any more, also after a restart of the agent; no new one starts", async () => {
    await createEgress("nat", [GATEWAY], { destinations: ["192.0.2.0/24"] });
    await patch(EGRESS_RESOURCE, "nat", { status: { observedGeneration: 1 } }, "status");
    await startAgent();
    await add("c1");
    const config = () => networks.applied.get(netnsOf("c1"))?.egresses[0];
    const before = config();
    expect(before?.gateways[0]).toEqual({ ipv4: "10.96.0.10" });
    await asEarlierRelease(transport, () =>
      patch(EGRESS_RESOURCE, "nat", { spec: { destinations: [NO_NETWORK] } }),
    );
    await agent?.stop();
    networks.applied.clear();
    await startAgent();
    await eventually(() => expect(config()).toEqual(before));
    expect(await add("c2")).toMatchObject({
      exitCode: 1,
      result: {
        code: 11,
        msg: expect.stringMatching(
          /nat is not understood by this release: spec\.destinations\[0\]: "192\.0\.2\.0\/33"/,
        ),
        details: expect.stringMatching(/kubectl edit egress/),
      },
    });
    expect(await sliceAddresses("nat")).toEqual([addressOf("c1"), "fd00:244::c1"]);
  });

  it("is not touched by a restart of the agent", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    const before = await slices.get({ namespace, name: sliceName("nat", NODE) });
    await agent?.stop();
    await startAgent();
    expect(await slices.get({ namespace, name: sliceName("nat", NODE) })).toEqual(before);
    expect(await run("CHECK", "c1", annotations("nat"))).toEqual({ exitCode: 0, result: undefined });
  });

  it("is back in its slice when somebody deletes or empties it", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await slices.delete({ namespace, name: sliceName("nat", NODE) });
    await eventually(async () => expect(await sliceAddresses("nat")).toContain(addressOf("c1")));
    await patch(SLICE_RESOURCE, sliceName("nat", NODE), { clients: [], clientCount: 0 });
    await eventually(async () => expect(await sliceAddresses("nat")).toContain(addressOf("c1")));
  });

  it("is withdrawn when its network namespace is gone at the start of the agent", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await agent?.stop();
    networks.gone.add(netnsOf("c1"));
    await startAgent();
    await eventually(async () => expect(await sliceAddresses("nat")).toEqual([]));
  });

  it("whose record was lost with the node's memory is withdrawn", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    await agent?.stop();
    state.removeRecord("c1:eth0:pods");
    gateways.setStuck(GATEWAY, true);
    await startAgent();
    await eventually(() => expect(state.tombstones()).toContain(addressOf("c1")));
    gateways.setStuck(GATEWAY, false);
    await eventually(() => expect(state.tombstones()).toEqual([]));
    expect(await sliceAddresses("nat")).toEqual([]);
  });

  it("that differs from what it should be is found by CHECK", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    networks.applied.clear();
    expect(await run("CHECK", "c1", annotations("nat"))).toMatchObject({
      exitCode: 1,
      result: { code: 101, msg: expect.stringMatching(/route 192\.0\.2\.0\/24 is missing/) },
    });
  });

  it("whose addresses the runtime remembers otherwise is found by CHECK", async () => {
    await createEgress("nat", [GATEWAY]);
    await startAgent();
    await add("c1");
    const checked = await run("CHECK", "c1", annotations("nat"), { prevResult: prevResult("c2") });
    expect(checked).toMatchObject({
      exitCode: 1,
      result: {
        code: 101,
        msg: expect.stringMatching(/addresses are 10\.244\.0\.1, .*prevResult 10\.244\.0\.2/),
      },
    });
  });
});

/** As the operator writes it. */
function clusterRangesMetadata() {
  return { namespace, name: CLUSTER_RANGES_CONFIG_MAP };
}

/** Under load an apiserver takes seconds for what takes milliseconds else. */
function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000 });
}

async function startAgent(acknowledgeDeadlineMs = ACKNOWLEDGE_DEADLINE_MS): Promise<void> {
  metrics = new Registry();
  const ended = new AbortController();
  const started = new Agent({
    nodeName: NODE,
    namespace,
    prober: gateways,
    recordEvent: (_pod, event) => events.push(event),
    metrics,
    locations: locationsIn(folder),
    ...{ transport, networks, logger, acknowledgeDeadlineMs },
  });
  const running = started.run(ended.signal);
  agent = {
    stop: async () => {
      ended.abort();
      await running;
    },
  };
  await eventually(() => expect(started.check.ok).toBe(true));
}

function run(
  command: string,
  id: string,
  podAnnotations: Record<string, string> | undefined,
  options: {
    readonly podNamespace?: string;
    readonly network?: string;
    readonly ifname?: string;
    /** More of the network configuration. */
    readonly [field: string]: unknown;
  } = {},
): Promise<{ exitCode: number; result: unknown }> {
  const { podNamespace = "apps", network = "pods", ifname = "eth0", ...fields } = options;
  const uid = podAnnotations === undefined ? "" : `;K8S_POD_UID=uid-${id}`;
  const environment = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: id,
    CNI_NETNS: netnsOf(id),
    CNI_IFNAME: ifname,
    CNI_PATH: "/opt/cni/bin",
    CNI_ARGS: `K8S_POD_NAMESPACE=${podNamespace};K8S_POD_NAME=pod-${id}${uid}`,
  };
  const configuration = {
    cniVersion: "1.0.0",
    name: network,
    type: "egress-nat",
    prevResult: prevResult(id),
    ...fields,
    ...(podAnnotations && { runtimeConfig: { "io.kubernetes.cri.pod-annotations": podAnnotations } }),
  };
  writeFileSync(netnsOf(id), "");
  return plugin.run(folder, environment, JSON.stringify(configuration));
}

function netnsOf(id: string): string {
  return join(folder, "netns", id);
}

function rewrite(file: string, change: (content: Record<string, unknown>) => object): void {
  writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, "utf8")))));
}

function add(id: string) {
  return run("ADD", id, annotations("nat"));
}

function annotations(name: string): Record<string, string> {
  return { [`egress.coil.cybozu.com/${namespace}`]: name };
}

function addressOf(id: string): string {
  return `10.244.0.${id.slice(1)}`;
}

function prevResult(id: string) {
  return {
    cniVersion: "1.0.0",
    interfaces: [{ name: "eth0", sandbox: netnsOf(id) }],
    ips: [
      { address: `${addressOf(id)}/24`, interface: 0 },
      { address: `fd00:244::${id}/64`, interface: 0 },
    ],
  };
}

async function sliceAddresses(name: string): Promise<string[]> {
  const list = await slices.list({ namespace, labelSelector: `${EGRESS_LABEL}=${name}` });
  return list.items.flatMap(({ clients }) => clients.flatMap(({ addresses }) => addresses));
}

function createEgress(name: string, addresses: readonly string[], spec: object = {}): Promise<string> {
  return createServedEgress({ transport, namespace }, name, addresses, spec);
}

/** As the operator does once it has resolved the Egress's selector. */
function allow(name: string, allowedNamespaces: readonly string[]): Promise<void> {
  return patch(EGRESS_RESOURCE, name, { status: { allowedNamespaces, observedGeneration: 1 } }, "status");
}

function endpoint(address: string) {
  return gatewayEndpoint(namespace, address);
}

function create(resource: Resource, object: object): Promise<void> {
  return createObject({ transport, namespace }, resource, object);
}

function patch(resource: Resource, name: string, change: object, subresource?: string): Promise<void> {
  return patchObject({ transport, namespace }, resource, name, change, subresource);
}
