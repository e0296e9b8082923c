import {
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  type EgressClientSlice,
  labelValue,
  SLICE_RESOURCE,
  sliceName,
} from "@egress-nat/crds";
import { EgressPod, type GatewayPort, Metrics } from "@egress-nat/egress-pod";
import type { GatewayConfig } from "@egress-nat/founat";
import {
  createTransport,
  loadCredentials,
  NAMESPACE_RESOURCE,
  NODE_RESOURCE,
  type Resource,
  resourcePath,
  type Transport,
} from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { runOperator } from "../bed/api/running-operator.ts";

/** The product's, the Egress's, and the client's. */
const NAMESPACE = "bounds";
const NODE = "bounds-node";
const LABEL = "egress-nat-api/allowed";

const SOON = { timeout: 30_000, interval: 20 };

const logger = createLogger({ name: "test", level: "silent" });

/** A gateway whose rule set is what it was last told: that a kernel keeps to it is for the tests of the data path. */
class RecordedRules implements GatewayPort {
  config: GatewayConfig | undefined;
  readonly clients = new Set<string>();
  readonly transactions = { begun: 0, succeeded: 0 };

  async configure(config: GatewayConfig) {
    this.config = config;
  }

  async sync(clients: Parameters<GatewayPort["sync"]>[0]) {
    this.clients.clear();
    for (const { addresses } of clients) for (const address of addresses) this.clients.add(address);
  }

  async update({ put = [], remove = [] }: Parameters<GatewayPort["update"]>[0]) {
    // There is one client.
    if ([...remove].length > 0) this.clients.clear();
    for (const { addresses } of put) for (const address of addresses) this.clients.add(address);
  }

  async check() {
    return [];
  }

  async repair() {}

  async drops() {
    return new Map();
  }
}

const rules = new RecordedRules();
const stop = new AbortController();
let transport: Transport;
let operator: AsyncDisposable;
let running: Promise<void>;

/** The operator and one gateway, and the slice that an agent has written for a client. */
beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger });
  await create(NAMESPACE_RESOURCE, { metadata: { name: NAMESPACE, labels: { [LABEL]: "yes" } } });
  await create(NODE_RESOURCE, { metadata: { name: NODE } });
  await create(EGRESS_RESOURCE, {
    metadata: { name: "nat", namespace: NAMESPACE },
    spec: {
      destinations: ["0.0.0.0/0"],
      allowedNamespaces: { matchLabels: { [LABEL]: "yes" } },
    },
  });
  await create(SLICE_RESOURCE, {
    metadata: {
      name: sliceName("nat", NODE),
      namespace: NAMESPACE,
      labels: { [EGRESS_LABEL]: labelValue("nat") },
    },
    nodeName: NODE,
    clients: [
      {
        ...{ namespace: NAMESPACE, name: "alice", uid: "alice" },
        addresses: ["10.244.1.8"],
        addedAt: "2026-01-02T03:04:05.678901Z",
      },
    ] satisfies EgressClientSlice["clients"],
  });
  operator = runOperator(transport, NAMESPACE);
  const gateway = new EgressPod({
    egress: { namespace: NAMESPACE, name: "nat" },
    addresses: [],
    clusterRangesNamespace: NAMESPACE,
    transport,
    createGateway: (config) => {
      rules.config = config;
      return rules;
    },
    liveFlows: async () => 0,
    // Nobody else changes what is recorded here.
    watchKernel: async () => undefined,
    ping: async () => undefined,
    askUplinks: async () => new Set(),
    recordEvent: () => undefined,
    drainSeconds: 300,
    logger,
    metrics: new Metrics(new Registry()),
  });
  running = gateway.run(stop.signal);
  await vi.waitFor(() => expect([...rules.clients]).toEqual(["10.244.1.8"]), SOON);
});

afterAll(async () => {
  stop.abort();
  await Promise.all([running, operator[Symbol.asyncDispose]()]);
  transport.close();
});

test("a namespace that is allowed no longer loses its clients at the gateway, and has them again when it is", async () => {
  await patch(NAMESPACE_RESOURCE, NAMESPACE, { metadata: { labels: { [LABEL]: null } } });
  await expect.poll(() => [...rules.clients], SOON).toEqual([]);
  await patch(NAMESPACE_RESOURCE, NAMESPACE, { metadata: { labels: { [LABEL]: "yes" } } });
  await expect.poll(() => [...rules.clients], SOON).toEqual(["10.244.1.8"]);
});

test("what is excluded is out of the gateway's reach, until it no longer is", async () => {
  await patch(EGRESS_RESOURCE, "nat", { spec: { excludedDestinations: ["192.0.2.0/24"] } });
  await expect.poll(() => rules.config?.excluded, SOON).toContain("192.0.2.0/24");
  await patch(EGRESS_RESOURCE, "nat", { spec: { excludedDestinations: null } });
  await expect.poll(() => rules.config?.excluded, SOON).not.toContain("192.0.2.0/24");
});

test("what has become the cluster's is out of the gateway's reach, until it no longer is", async () => {
  const name = "bounds-nobodys-node";
  await create(NODE_RESOURCE, { metadata: { name }, spec: { podCIDRs: ["198.51.100.0/24"] } });
  await expect.poll(() => rules.config?.excluded, SOON).toContain("198.51.100.0/24");
  await transport.request({ method: "DELETE", path: resourcePath(NODE_RESOURCE, { name }) });
  await expect.poll(() => rules.config?.excluded, SOON).not.toContain("198.51.100.0/24");
});

function create(resource: Resource, object: object): Promise<unknown> {
  const body = { apiVersion: resource.apiVersion, kind: resource.kind, ...object };
  return transport.request({ method: "POST", path: resourcePath(resource, namespaceOf(resource)), body });
}

function patch(resource: Resource, name: string, change: object): Promise<unknown> {
  return transport.request({
    method: "PATCH",
    path: resourcePath(resource, { ...namespaceOf(resource), name }),
    contentType: "application/merge-patch+json",
    body: change,
  });
}

function namespaceOf({ namespaced }: Resource) {
  return namespaced ? { namespace: NAMESPACE } : {};
}
