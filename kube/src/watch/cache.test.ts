import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CONFIG_MAP_RESOURCE } from "../objects/resource.ts";
import { ConfigMap } from "../testing/config-maps.ts";
import { FakeTransport, page, watch } from "../testing/fake-transport.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { Cache, CacheSet } from "./cache.ts";
import type { Change } from "./store.ts";

const map = (name: string, resourceVersion: string, v = resourceVersion) => ({
  metadata: { namespace: "garden", name, uid: `uid-${name}`, resourceVersion },
  data: { v },
});

let stop: AbortController;
let running: Promise<unknown>[];

beforeEach(() => {
  stop = new AbortController();
  running = [];
});

afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

type Answers = ConstructorParameters<typeof FakeTransport>[0];

function cacheOf(answers: Answers, name?: string): Cache<ConfigMap> {
  return new Cache({
    transport: new FakeTransport(answers),
    ...(name === undefined ? {} : { name }),
    resource: CONFIG_MAP_RESOURCE,
    parse: (raw) => ConfigMap.parse(raw),
    indexes: { value: ({ data }) => Object.values(data) },
    logger: silentLogger,
  });
}

const run = (runs: Pick<CacheSet, "run">) => void running.push(runs.run(stop.signal));

describe("a cache", () => {
  test("holds what the API has, finds it by its indexes, and tells changes with what was before", async () => {
    const cache = cacheOf([
      page("5", [map("a", "3")]),
      watch([{ type: "MODIFIED", object: map("a", "6") }], "lasts"),
    ]);
    const changes: Change<ConfigMap>[] = [];
    cache.onChange((change) => changes.push(change));
    run(cache);
    await cache.whenSynced(stop.signal);
    await expect.poll(() => cache.store.byIndex("value", "6")).toHaveLength(1);
    expect(changes.map(({ type, previous }) => [type, previous?.data.v])).toEqual([
      ["added", undefined],
      ["updated", "3"],
    ]);
    expect(cache.store.byIndex("value", "3")).toEqual([]);
  });

  test("learns from the answer to a write what the watch has not told of yet", () => {
    const cache = cacheOf([]);
    cache.store.put(map("a", "3"));
    cache.learn(map("a", "4"), "3");
    expect(cache.store.get("garden/a")?.data.v).toBe("4");
  });

  test.each([
    ["is at another version of the object already", [map("a", "5")]],
    ["has seen the object go", []],
  ])("learns nothing from an answer where the watch %s", (_, seen) => {
    const cache = cacheOf([]);
    for (const object of seen) cache.store.put(object);
    cache.learn(map("a", "4"), "3");
    expect(cache.store.list()).toEqual(seen);
  });
});

describe("a set of caches", () => {
  const listed: Answers = [page("5", []), watch([], "lasts")];

  test("is waited for until each has a list, and names those that have none", async () => {
    const beds = cacheOf(listed, "beds");
    const paths = cacheOf(listed, "paths");
    const caches = new CacheSet([beds, paths]);
    let isSynced = false;
    const waiting = caches.whenSynced(stop.signal).then(() => {
      isSynced = true;
    });
    run(paths);
    await paths.whenSynced(stop.signal);
    expect(caches.unsynced).toEqual(["beds"]);
    expect(isSynced).toBe(false);
    run(beds);
    await waiting;
    expect(caches.unsynced).toEqual([]);
    expect(caches.states).toMatchObject({ beds: { synced: true }, paths: { synced: true } });
  });

  test("is waited for no longer than the one who waits wants to", async () => {
    const waiting = new CacheSet([cacheOf([])]).whenSynced(stop.signal);
    stop.abort(new Error("no more time"));
    await expect(waiting).rejects.toThrow("no more time");
  });
});
