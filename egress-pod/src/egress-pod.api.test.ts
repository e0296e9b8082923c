import { setTimeout as sleep } from "node:timers/promises";
import type { Family } from "@egress-nat/addresses";
import {
  CLUSTER_RANGES_CONFIG_MAP,
  clusterRangesData,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  Egress,
  EgressClientSlice,
  FOU_PORT,
  labelValue,
  SLICE_RESOURCE,
  sliceName,
} from "@egress-nat/crds";
import {
  type Difference,
  FounatError,
  type GatewayClient,
  type GatewayConfig,
  type Suspicion,
} from "@egress-nat/founat";
import {
  CONFIG_MAP_RESOURCE,
  createTransport,
  type KubeObject,
  loadCredentials,
  NAMESPACE_RESOURCE,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { asEarlierRelease, NO_NETWORK } from "@egress-nat/test/bed/api/earlier-release";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test, vi } from "vitest";
import { ZodError } from "zod";
import { EgressPod } from "./egress-pod.ts";
import type { GatewayPort } from "./gateway-sync.ts";
import { Metrics } from "./metrics.ts";

const SOON = { timeout: 30_000, interval: 20 };

/** A gateway whose kernel is a map: addresses of clients by their id. */
class FakeGateway implements GatewayPort {
  config: GatewayConfig | undefined;
  readonly clients = new Map<string, readonly string[]>();
  failure: FounatError | undefined;
  /** What somebody else has changed. */
  differences: readonly Difference[] = [];
  /** Whether repairs wait. */
  held = Promise.resolve();
  readonly transactions = { begun: 0, succeeded: 0 };
  flows = 1;

  async configure(config: GatewayConfig) {
    this.#fail();
    this.config = config;
  }
  async sync(clients: Iterable<GatewayClient>) {
    this.#fail();
    this.clients.clear();
    await this.update({ put: clients });
  }
  async update({ put = [], remove = [] }: { put?: Iterable<GatewayClient>; remove?: Iterable<string> }) {
    this.#fail();
    for (const id of remove) this.clients.delete(id);
    for (const { id, addresses } of put) this.clients.set(id, addresses);
  }
  async check() {
    this.#fail();
    return this.differences;
  }
  async repair() {
    await this.held;
    this.#fail();
    this.differences = [];
  }
  async drops() {
    return new Map();
  }
  get addresses() {
    return [...this.clients.values()].flat().sort();
  }
  #fail() {
    if (this.failure) throw this.failure;
  }
}

const logger = createLogger({ name: "test", level: "silent" });
let transport: Transport;
let namespace: string;
let kernel: FakeGateway;
let pod: EgressPod;
let registry: Registry;
/** Says that the kernel may have changed. */
let suspect: (where: Suspicion) => void;
let events: string[];
/** What is told of requests to the addresses that it asks. */
let pinged: Map<string, (answered: boolean) => void>;
/** Addresses of the gateways that it asks for their way out. */
let asked: readonly (readonly string[])[];
/** In which families any of them has it. */
let otherWays: Set<Family>;
let stop: AbortController;
let running: Promise<void>;

const egresses = () => new ResourceClient(transport, EGRESS_RESOURCE, (raw) => Egress.parse(raw));
const slices = () => new ResourceClient(transport, SLICE_RESOURCE, (raw) => EgressClientSlice.parse(raw));

beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger });
});

afterAll(() => transport.close());

beforeEach(async () => {
  namespace = `egress-pod-${Date.now()}`;
  await new ResourceClient(transport, NAMESPACE_RESOURCE, (raw) => raw as KubeObject).create({
    metadata: { name: namespace },
  });
  await publishRanges(["10.244.0.0/16"]);
  kernel = new FakeGateway();
  events = [];
  [pinged, asked, otherWays] = [new Map(), [], new Set()];
  pod = newPod();
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await running;
});

const newPod = () => {
  registry = new Registry();
  return new EgressPod({
    egress: { namespace, name: "internet" },
    addresses: ["10.244.9.1"],
    drainSeconds: 60,
    clusterRangesNamespace: namespace,
    transport,
    createGateway: (config) => {
      kernel.config = config;
      return kernel;
    },
    liveFlows: async () => kernel.flows,
    watchKernel: async ({ onChange }) => {
      suspect = onChange;
    },
    ping: async (address, onRequest) => {
      pinged.set(address, onRequest);
    },
    askUplinks: async (others) => {
      asked = others;
      return otherWays;
    },
    recordEvent: ({ metadata }, { reason, message }) => events.push(`${metadata.name} ${reason}: ${message}`),
    logger,
    metrics: new Metrics(registry),
  });
};

const start = () => {
  running = pod.run(stop.signal);
};

/** As the operator does. */
const publishRanges = (cidrs: readonly string[]) =>
  new ResourceClient(transport, CONFIG_MAP_RESOURCE, (raw) => raw as KubeObject & { data: object }).apply(
    { metadata: { name: CLUSTER_RANGES_CONFIG_MAP, namespace }, data: clusterRangesData(cidrs) },
    { fieldManager: "operator" },
  );

const createEgress = (spec: Partial<Egress["spec"]> = {}) =>
  egresses().create({
    metadata: { namespace, name: "internet" },
    spec: { destinations: ["0.0.0.0/0"], ...spec },
  });

/** Writes the slice of a node, as its agent does. */
async function putSlice(node: string, addresses: readonly string[], egress = "internet") {
  const name = sliceName(egress, node);
  const clients = addresses.map((address) => ({
    namespace: "default",
    name: `pod-${address}`,
    uid: `uid-${address}`,
    addresses: [address],
    addedAt: "2026-01-01T00:00:00.000Z",
  }));
  const metadata = { namespace, name, labels: { [EGRESS_LABEL]: labelValue(egress) } };
  return slices().apply({ metadata, nodeName: node, clients }, { fieldManager: node });
}

const applied = ({ metadata }: EgressClientSlice) => pod.appliedGeneration(metadata.uid);

/** Starts it with one client. @returns the client's slice, applied */
async function serveOneClient() {
  await createEgress();
  const slice = await putSlice("n1", ["10.244.1.2"]);
  start();
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  return slice;
}

/** Has it find what somebody else has changed, and not repair it until it is let go. */
async function holdRepairOf(difference: Difference): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  kernel.held = promise;
  kernel.differences = [difference];
  suspect({ elements: true });
  await vi.waitFor(() => expect(pod.ready().reasons.join()).toContain(difference.text), SOON);
  return resolve;
}

test("it is ready when both lists are complete and the rule set that holds them is applied", async () => {
  expect(pod.ready().ok).toBe(false);
  await createEgress();
  const slice = await putSlice("n1", ["10.244.1.2"]);
  await putSlice("n1", ["10.244.9.9"], "another");
  start();
  await vi.waitFor(() => expect(pod.ready()).toEqual({ ok: true, reasons: [] }), SOON);
  expect(kernel.addresses).toEqual(["10.244.1.2"]);
  expect(kernel.config).toEqual({
    addresses: ["10.244.9.1"],
    port: FOU_PORT,
    sourcePortAuto: false,
    destinations: ["0.0.0.0/0"],
    excluded: ["10.244.0.0/16"],
    backend: "nftables",
  });
  expect(applied(slice)).toBe("1");
});

test("clients come and go with slices, and heartbeats tell the generation that is applied", async () => {
  await createEgress();
  start();
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  const first = await putSlice("n1", ["10.244.1.2", "10.244.1.3"]);
  await vi.waitFor(() => expect(applied(first)).toBe("1"), SOON);
  expect(kernel.addresses).toEqual(["10.244.1.2", "10.244.1.3"]);

  const second = await putSlice("n1", ["10.244.1.3", "10.244.1.4"]);
  await vi.waitFor(() => expect(applied(second)).toBe(String(second.metadata.generation)), SOON);
  expect(kernel.addresses).toEqual(["10.244.1.3", "10.244.1.4"]);

  await slices().delete({ namespace, name: second.metadata.name });
  await vi.waitFor(() => expect(applied(second)).toBeUndefined(), SOON);
  expect(kernel.addresses).toEqual([]);
});

test("destinations change while it runs; nobody is served once the Egress is gone", async () => {
  await createEgress();
  await putSlice("n1", ["10.244.1.2"]);
  start();
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  await egresses().patch({ namespace, name: "internet" }, { spec: { destinations: ["192.0.2.0/24"] } });
  await vi.waitFor(() => expect(kernel.config?.destinations).toEqual(["192.0.2.0/24"]), SOON);
  expect(pod.ready().ok).toBe(true);

  await egresses().delete({ namespace, name: "internet" });
  await vi.waitFor(() => expect(kernel.addresses).toEqual([]), SOON);
  expect(kernel.config?.destinations).toEqual([]);
  expect(pod.ready().reasons).toEqual([`Egress ${namespace}/internet does not exist`]);
});

test("without its way out it is not ready while another gateway has its own, and heartbeats tell of it", async () => {
  await createEgress({ uplinkProbe: { targets: ["192.0.2.1"] } });
  const gateways = [
    { name: "own", addresses: ["10.244.9.1"], state: "Ready" },
    { name: "other", addresses: ["10.244.9.2"], state: "Ready" },
    { name: "of no use", addresses: ["10.244.9.3"], state: "Down" },
    { name: "ready, but not reached by a node", addresses: ["10.244.9.4"], state: "Down", reportedBy: "n1" },
  ];
  await egresses().patch(
    { namespace, name: "internet" },
    { status: { gateways } },
    { subresource: "status" },
  );
  start();
  const untried = ["uplink: no answer yet from 192.0.2.1"];
  await vi.waitFor(() => expect(pod.ready()).toEqual({ ok: false, reasons: untried }), SOON);
  expect([...pinged.keys()]).toEqual(["192.0.2.1"]);
  expect(pod.heartbeat("uplink")).toBeUndefined();

  pinged.get("192.0.2.1")?.(true);
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(pod.heartbeat("uplink-ipv4")).toBe("works");
  otherWays.add("ipv4");
  for (let miss = 0; miss < 3; miss += 1) pinged.get("192.0.2.1")?.(false);
  expect(pod.heartbeat("uplink-ipv4")).toBeUndefined();
  const reasons = ["uplink: no answer from 192.0.2.1"];
  await vi.waitFor(() => expect(pod.ready()).toEqual({ ok: false, reasons }), SOON);
  expect(pod.heartbeat("uplink")).toBe("lost");
  expect(asked).toEqual([["10.244.9.2"], ["10.244.9.4"]]);

  for (let answer = 0; answer < 3; answer += 1) pinged.get("192.0.2.1")?.(true);
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(pod.heartbeat("uplink")).toBeUndefined();
  const told = ["UplinkLost", "UplinkBack"];
  await vi.waitFor(() => expect(events.map((event) => event.split(/[ :]/)[1])).toEqual(told), SOON);
});

test("the backend changes while it runs, and it says what the node lacks for it", async () => {
  const slice = await serveOneClient();
  const reference = { namespace, name: "internet" };
  const lacking = new FounatError("backend-unavailable", "ipset is not found: install it, or use nftables");
  kernel.failure = lacking;
  await egresses().patch(reference, { spec: { natBackend: "iptables" } });
  await vi.waitFor(() => expect(pod.ready()).toEqual({ ok: false, reasons: [lacking.message] }), SOON);
  expect(kernel.config?.backend).toBe("nftables");

  // Nobody tells it that the node was mended.
  kernel.failure = undefined;
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(kernel.config?.backend).toBe("iptables");
  expect(kernel.addresses).toEqual(["10.244.1.2"]);
  expect(applied(slice)).toBe("1");

  await egresses().patch(reference, { spec: { natBackend: "nftables" } });
  await vi.waitFor(() => expect(kernel.config?.backend).toBe("nftables"), SOON);
  expect(pod.ready().ok).toBe(true);
});

test("an Egress that it does not understand any more is served by what was last known, and its clients go on", async () => {
  await createEgress({ destinations: ["192.0.2.0/24"] });
  await putSlice("n1", ["10.244.1.2"]);
  start();
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  const reference = { namespace, name: "internet" };
  const status = { observedGeneration: 1 };
  await egresses().apply(
    { metadata: reference, status },
    { fieldManager: "operator", subresource: "status" },
  );
  await asEarlierRelease(transport, () =>
    egresses()
      .patch(reference, { spec: { destinations: [NO_NETWORK] } })
      .catch((error: unknown) => expect(error).toBeInstanceOf(ZodError)),
  );
  const later = await putSlice("n2", ["10.244.2.2"]);
  await vi.waitFor(() => expect(applied(later)).toBe("1"), SOON);
  expect(kernel.addresses).toEqual(["10.244.1.2", "10.244.2.2"]);
  expect(kernel.config?.destinations).toEqual(["192.0.2.0/24"]);
  expect(pod.ready().ok).toBe(true);

  // A program that starts now leaves what the kernel has, and says why it is not ready.
  stop.abort();
  await running;
  stop = new AbortController();
  pod = newPod();
  start();
  const reason = expect.stringMatching(
    /^Egress .*\/internet is not understood by this release: spec\.destinations\[0\]/,
  );
  await vi.waitFor(() => expect(pod.ready().reasons).toContainEqual(reason), SOON);
  expect(kernel.addresses).toEqual(["10.244.1.2", "10.244.2.2"]);
  expect(kernel.config?.destinations).toEqual(["192.0.2.0/24"]);

  await egresses().patch(reference, { spec: { destinations: ["198.51.100.0/24"] } });
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(kernel.config?.destinations).toEqual(["198.51.100.0/24"]);
});

test("an Egress that was deleted and made anew, and is not understood, is not served as the former one was", async () => {
  const slice = await serveOneClient();
  // It is busy while the Egress is replaced, so that it sees only what comes of it.
  const letGo = await holdRepairOf({ object: "rule", text: "ip rule 2000 is missing" });
  await asEarlierRelease(transport, async () => {
    await egresses().delete({ namespace, name: "internet" });
    await createEgress({ destinations: [NO_NETWORK] }).catch((error: unknown) =>
      expect(error).toBeInstanceOf(ZodError),
    );
  });
  await vi.waitFor(() => expect(pod.ready().reasons.join()).toMatch(/is not understood/), SOON);
  expect(kernel.addresses).toEqual(["10.244.1.2"]);
  letGo();
  await vi.waitFor(() => expect(kernel.addresses).toEqual([]), SOON);
  expect(applied(slice)).toBeUndefined();
  expect(pod.ready().reasons).toEqual([expect.stringMatching(/is not understood/)]);
});

test("it serves clients of the namespaces that the operator has found to be allowed, and no others", async () => {
  await createEgress({ allowedNamespaces: {} });
  const slice = await putSlice("n1", ["10.244.1.2"]);
  start();
  await vi.waitFor(() => expect(applied(slice)).toBe("1"), SOON);
  expect(kernel.addresses).toEqual([]);

  const allow = (allowedNamespaces: string[]) =>
    egresses().apply(
      { metadata: { namespace, name: "internet" }, status: { allowedNamespaces, observedGeneration: 1 } },
      { fieldManager: "operator", subresource: "status" },
    );
  await allow(["default", "payments"]);
  await vi.waitFor(() => expect(kernel.addresses).toEqual(["10.244.1.2"]), SOON);
  await allow(["payments"]);
  await vi.waitFor(() => expect(kernel.addresses).toEqual([]), SOON);
});

test("it says why it is not ready while the kernel refuses, and recovers by itself", async () => {
  await createEgress();
  const slice = await putSlice("n1", ["10.244.1.2"]);
  kernel.failure = new FounatError("forwarding-disabled", "net.ipv4.ip_forward is 0", { retryable: true });
  start();
  const reason = expect.stringMatching(
    /^net\.ipv4\.ip_forward is 0; the node's agent sets it .* so delete this pod$/,
  );
  await vi.waitFor(() => expect(pod.ready().reasons).toEqual([reason]), SOON);
  expect(applied(slice)).toBe("0"); // not undefined, which says that it trusts nobody
  kernel.failure = undefined;
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(applied(slice)).toBe("1");
});

test("it is not ready while somebody else has changed the data path, puts it right and tells", async () => {
  const slice = await serveOneClient();
  const text = "nft chain egress_nat_gateway forward is missing";
  const letGo = await holdRepairOf({ object: "chain", text });
  expect(pod.ready().reasons.join()).toContain(`another program changed the data path: ${text}`);
  expect(applied(slice)).toBe("1");
  letGo();
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(events).toEqual([expect.stringMatching(/^internet GatewayChanged: .* forward is missing$/)]);
  expect(await registry.metrics()).toContain('egress_nat_gateway_drift_repairs_total{object="chain"} 1');

  suspect({ elements: true });
  await putSlice("n2", ["10.244.2.2"]);
  await vi.waitFor(() => expect(kernel.addresses).toContain("10.244.2.2"), SOON);
  expect(events).toHaveLength(1);
});

test("a data path that cannot be put right keeps it from being ready, and it tries again", async () => {
  await createEgress();
  start();
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  kernel.failure = new FounatError("uplink-missing", "no default route", { retryable: true });
  suspect({ elements: true });
  await vi.waitFor(() => expect(pod.ready().reasons).toEqual(["no default route"]), SOON);
  kernel.failure = undefined;
  kernel.differences = [{ object: "rule", text: "not done: ip rule add pref 2000" }];
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(kernel.differences).toEqual([]);
});

test("it follows the networks of the cluster", async () => {
  await createEgress();
  start();
  await vi.waitFor(() => expect(pod.ready().ok).toBe(true), SOON);
  expect(kernel.config?.excluded).toEqual(["10.244.0.0/16"]);
  await publishRanges(["10.244.0.0/16", "192.0.2.7/32"]);
  await vi.waitFor(() => expect(kernel.config?.excluded).toEqual(["10.244.0.0/16", "192.0.2.7/32"]), SOON);
});

test("it serves nobody before the networks of the cluster are known", async () => {
  await new ResourceClient(transport, CONFIG_MAP_RESOURCE, (raw) => raw as KubeObject).delete({
    namespace,
    name: CLUSTER_RANGES_CONFIG_MAP,
  });
  await createEgress();
  const slice = await putSlice("n1", ["10.244.1.2"]);
  start();
  await vi.waitFor(() => expect(pod.ready().reasons.join()).toMatch(/does the operator run\?/), SOON);
  expect(applied(slice)).toBe("0");
  expect(kernel.config).toBeUndefined();
  await publishRanges([]);
  await vi.waitFor(() => expect(applied(slice)).toBe("1"), SOON);
  expect(pod.ready().ok).toBe(true);
});

test("draining, it promises no more time than its pod has, nor more than the Egress gives it", async () => {
  const slice = await serveOneClient();
  await egresses().patch({ namespace, name: "internet" }, { spec: { drainTimeoutSeconds: 3600 } });
  const draining = pod.drain();
  await vi.waitFor(() => expect(events).toEqual([expect.stringMatching(/ \(60 s\)\.$/)]), SOON);
  await egresses().patch({ namespace, name: "internet" }, { spec: { drainTimeoutSeconds: 0 } });
  await draining;
  expect(events.slice(1)).toEqual([expect.stringMatching(/^internet GatewayDrained: .* cuts off 1 flow\./)]);
  expect(applied(slice)).toBe("1");
});

test("draining before it has read its Egress, it waits for flows that a former process has let in", async () => {
  kernel.flows = 1;
  let hasEnded = false;
  const draining = pod.drain().then(() => {
    hasEnded = true;
  });
  await sleep(2_500);
  expect(hasEnded).toBe(false);
  kernel.flows = 0;
  await draining;
});

test("draining, it serves old and new clients, and says so, until none is left", async () => {
  const slice = await serveOneClient();
  let ended = false;
  const draining = pod.drain().then(() => {
    ended = true;
  });
  const later = await putSlice("n2", ["10.244.2.2"]);
  await vi.waitFor(() => expect(applied(later)).toBe("1"), SOON);
  expect(kernel.addresses).toEqual(["10.244.1.2", "10.244.2.2"]);
  expect(pod.ready().ok).toBe(true);
  expect(ended).toBe(false);
  expect(events).toEqual([expect.stringMatching(/^internet GatewayDraining: .* has 1 flow\./)]);
  expect(await registry.metrics()).toMatch(/^egress_nat_gateway_draining_flows 1$/m);
  await slices().delete({ namespace, name: later.metadata.name });
  await slices().delete({ namespace, name: slice.metadata.name });
  await draining;
  expect(events.slice(1)).toEqual([
    expect.stringMatching(/^internet GatewayDrained: .*: no client is left\.$/),
  ]);
});
