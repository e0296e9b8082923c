import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { CONFIG_MAP_RESOURCE, type KubeObject } from "../objects/resource.ts";
import { ConfigMap } from "../testing/config-maps.ts";
import { Etcd } from "../testing/etcd.ts";
import { heapInUse } from "../testing/heap.ts";
import { createNamespace } from "../testing/namespace.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { createTransport } from "../transport/https-transport.ts";
import { loadCredentials } from "../transport/load-credentials.ts";
import type { Transport } from "../transport/transport.ts";
import { Reflector } from "../watch/reflector.ts";
import { Store } from "../watch/store.ts";

const OBJECTS = 10_000;
/** Of each object; the reflectors under test keep none of it. */
const PAYLOAD = "x".repeat(4_000);
const MIB = 2 ** 20;

let transport: Transport;
let namespace: string;
const stop = new AbortController();

beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger: silentLogger });
  namespace = await createNamespace(transport, "scale");
});

afterAll(() => {
  stop.abort();
  transport.close();
});

type Trimmed = KubeObject;

const objects = () =>
  Array.from({ length: OBJECTS }, (_, i) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      namespace,
      name: `object-${i}`,
      uid: randomUUID(),
      creationTimestamp: "2026-01-01T00:00:00Z",
    },
    data: { payload: PAYLOAD },
  }));

function reflect(store: Store<Trimmed>, onParse: () => void = () => undefined): Reflector<Trimmed> {
  return new Reflector({
    transport,
    resource: CONFIG_MAP_RESOURCE,
    namespace,
    parse: (raw) => {
      onParse();
      return { metadata: ConfigMap.parse(raw).metadata };
    },
    store,
    logger: silentLogger,
  });
}

test(`${OBJECTS} objects arrive by watch and by list, and only what is kept of them costs memory`, async () => {
  const etcd = new Etcd(inject("etcdUrl"));
  const prefix = `/registry/configmaps/${namespace}/`;
  const watched = new Store<Trimmed>();
  const watcher = reflect(watched);
  void watcher.run(stop.signal);
  await watcher.whenSynced();
  await etcd.store(({ metadata }) => `${prefix}${metadata.name}`, objects());
  await vi.waitUntil(() => watched.size === OBJECTS, 120_000);

  let parsed = 0;
  let peakBytes = 0;
  const listed = new Store<Trimmed>();
  const lister = reflect(listed, () => {
    parsed += 1;
    if (parsed % 1_000 === 0) peakBytes = Math.max(peakBytes, heapInUse());
  });
  const before = heapInUse();
  void lister.run(stop.signal);
  await lister.whenSynced();
  expect(listed.size).toBe(OBJECTS);
  // All objects at once would be 40 MB of text and more of objects; kept are four short strings of each.
  expect((peakBytes - before) / MIB).toBeLessThan(16);

  stop.abort();
  await etcd.deleteBelow(prefix);
});
