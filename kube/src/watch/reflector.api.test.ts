import { apiserver, etcd } from "@egress-nat/test/bed/api/apiserver";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test, vi } from "vitest";
import type { ResourceClient } from "../apply/resource-client.ts";
import { CONFIG_MAP_RESOURCE } from "../objects/resource.ts";
import { ConfigMap, configMaps } from "../testing/config-maps.ts";
import { Etcd } from "../testing/etcd.ts";
import { createNamespace } from "../testing/namespace.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { TcpProxy } from "../testing/tcp-proxy.ts";
import type { Credentials } from "../transport/credentials.ts";
import { createTransport } from "../transport/https-transport.ts";
import { loadCredentials } from "../transport/load-credentials.ts";
import type { Transport } from "../transport/transport.ts";
import { Reflector } from "./reflector.ts";
import type { ReflectorEvent } from "./reflector-event.ts";
import { type Change, Store } from "./store.ts";

/** Pauses between attempts grow while there is no apiserver. */
const RETRIES = 60_000;

let credentials: Credentials;
let direct: Transport;
let client: ResourceClient<ConfigMap>;
let namespace: string;

beforeAll(async () => {
  credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  direct = createTransport({ credentials, logger: silentLogger });
  client = configMaps(direct);
});

afterAll(() => direct.close());

let proxy: TcpProxy;
let viaProxy: Transport;
let store: Store<ConfigMap>;
let changes: Change<ConfigMap>[];
let events: ReflectorEvent[];
let stop: AbortController;
let running: Promise<void>;

/** A reflector of a new namespace with the ConfigMaps `one` and `two`, by way of a proxy. */
beforeEach(async () => {
  namespace = await createNamespace(direct, "reflector");
  await put("one", "1");
  await put("two", "2");
  proxy = await TcpProxy.to(credentials.server);
  viaProxy = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await running;
  viaProxy.close();
  await proxy[Symbol.asyncDispose]();
});

async function startReflector(
  options: { idleTimeoutMs?: number; metadataOnly?: boolean } = {},
): Promise<Reflector<ConfigMap>> {
  store = new Store();
  changes = [];
  events = [];
  store.onChange((change) => changes.push(change));
  const reflector = new Reflector({
    transport: viaProxy,
    resource: CONFIG_MAP_RESOURCE,
    namespace,
    parse: (raw) => ConfigMap.parse(raw),
    store,
    logger: silentLogger,
    onEvent: (event) => events.push(event),
    ...options,
  });
  running = reflector.run(stop.signal);
  await reflector.whenSynced();
  await vi.waitUntil(() => seen("watching") > 0);
  changes.length = 0;
  return reflector;
}

const put = (name: string, value: string) =>
  client.apply({ metadata: { namespace, name }, data: { value } }, { fieldManager: "test", force: true });
const remove = (name: string) => client.delete({ namespace, name });
const dataOf = (name: string) => store.get(`${namespace}/${name}`)?.data.value;
const seen = (type: ReflectorEvent["type"]) => events.filter((event) => event.type === type).length;
const told = () => changes.map(({ type, object }) => `${type} ${object.metadata.name}`).sort();

/** Waits until a change made now has arrived: then all changes before it have. */
async function caughtUp(): Promise<void> {
  const value = String(performance.now());
  await put("probe", value);
  await vi.waitUntil(() => dataOf("probe") === value);
  changes = changes.filter(({ object }) => object.metadata.name !== "probe");
}

test("a store follows what is created, updated and deleted", async () => {
  await startReflector();
  expect(store.size).toBe(2);
  await put("three", "3");
  await put("one", "1b");
  await remove("two");
  await caughtUp();
  expect(told()).toEqual(["added three", "deleted two", "updated one"]);
  expect(dataOf("one")).toBe("1b");
});

test("of metadata alone, nothing else comes, by list or by watch", async () => {
  await startReflector({ metadataOnly: true });
  await put("three", "3");
  const one = () => store.get(`${namespace}/one`)?.metadata.resourceVersion;
  const before = one();
  await put("one", "1b");
  await vi.waitUntil(() => one() !== before);
  // Nothing that is kept of it has changed.
  expect(told()).toEqual(["added three"]);
  expect(store.list().map(({ data }) => data)).toEqual([{}, {}, {}]);
  await remove("two");
  await vi.waitUntil(() => told().includes("deleted two"));
});

test("after the apiserver was killed and is back, changes arrive and nothing was lost or told twice", async () => {
  await startReflector();
  try {
    await apiserver.kill();
    await vi.waitUntil(() => seen("disconnected") >= 2);
  } finally {
    await apiserver.start();
  }
  expect(changes).toEqual([]);
  expect(store.size).toBe(2);
  await caughtUp();
  await put("one", "1b");
  await caughtUp();
  expect(told()).toEqual(["updated one"]);
});

test("where history was compacted away it lists again and tells the differences", async () => {
  await startReflector();
  proxy.cut();
  await vi.waitUntil(() => seen("disconnected") > 0);
  await put("three", "3");
  await put("one", "1b");
  await remove("two");
  await new Etcd(inject("etcdUrl")).compact();
  // The apiserver remembers recent changes by itself; a new one does not.
  await apiserver.kill();
  await apiserver.start();
  proxy.restore();
  await vi.waitUntil(() => seen("expired") > 0 && seen("synced") > 1, RETRIES);
  await caughtUp();
  expect(told()).toEqual(["added three", "deleted two", "updated one"]);
  expect(events.filter((event) => event.type === "relist").map(({ reason }) => reason)).toEqual([
    "start",
    "expired",
  ]);
});

test("after etcd was restored from a backup it lists again, though nothing was silent for long, and tells what is as it was", async () => {
  await etcd.backUp();
  await vi.waitUntil(() =>
    put("three", "3").then(
      () => true,
      () => false,
    ),
  );
  await put("one", "1b");
  await remove("two");
  // More than the apiserver itself writes when it starts.
  for (let i = 0; i < 200; i += 1) await put("three", String(i));
  await startReflector();
  try {
    await apiserver.kill();
    await etcd.restore();
  } finally {
    await apiserver.start();
  }
  await vi.waitUntil(() => seen("rewound") > 0 && seen("synced") > 1);
  await caughtUp();
  expect(told()).toEqual(["added two", "deleted three", "updated one"]);
  expect(dataOf("one")).toBe("1");
});

test("a connection that carries nothing any more is given up, and the watch goes on where it was", async () => {
  await startReflector({ idleTimeoutMs: 2_000 });
  proxy.freeze();
  await put("one", "1b");
  await vi.waitUntil(() => dataOf("one") === "1b", 10_000);
  expect(seen("idle")).toBeGreaterThan(0);
  expect(seen("relist")).toBe(1);
  expect(told()).toEqual(["updated one"]);
});

test("a broken connection costs no list", async () => {
  await startReflector();
  proxy.cut();
  await vi.waitUntil(() => seen("backoff") >= 2);
  await put("one", "1b");
  proxy.restore();
  await vi.waitUntil(() => dataOf("one") === "1b");
  expect(seen("relist")).toBe(1);
});
