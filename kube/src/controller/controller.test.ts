import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ParentLogger } from "../logger.ts";
import type { ConfigMap } from "../testing/config-maps.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { Store } from "../watch/store.ts";
import { Controller, type Reconciler } from "./controller.ts";
import { done, stalled, type WorkReport } from "./work-queue.ts";

const BACKOFF = { baseMs: 100, maxMs: 1_000 };

let clock: FakeClock;
let lines: Record<string, unknown>[];
let reports: WorkReport[];
let stop: AbortController;
let running: Promise<void>;
let controller: Controller;

beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  reports = [];
  stop = new AbortController();
  running = Promise.resolve();
  controller = new Controller({
    ...{ name: "bed", concurrency: 1, backoff: BACKOFF, clock, logger: loggerTo(lines, {}) },
    onReport: (report) => reports.push(report),
  });
});

afterEach(async () => {
  stop.abort();
  await running;
});

function loggerTo(to: Record<string, unknown>[], bound: object): ParentLogger {
  const log = (details: object, message: string) => void to.push({ ...bound, ...details, message });
  return {
    ...{ debug: log, info: log, warn: log, error: log },
    child: (details) => loggerTo(to, { ...bound, ...details }),
  };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await nextTurn();
}

function bed(name: string): ConfigMap {
  return { metadata: { name, namespace: "g", uid: name, resourceVersion: "1" }, data: {} };
}

async function run<S>(reconciler: Reconciler<S>): Promise<void> {
  running = controller.run(reconciler, stop.signal);
  await settle();
}

test("what is decided by is gathered when a key's turn has come", async () => {
  const plants = new Map([["a", "kale"]]);
  const seen: (string | undefined)[] = [];
  controller.add("a");
  controller.add("b");
  plants.set("b", "leek");
  await run({
    gather: (key) => plants.get(key),
    reconcile: async (plant) => {
      seen.push(plant);
      return done;
    },
  });
  expect(seen).toEqual(["kale", "leek"]);
});

test("all lines of one reconcile have the key and one id, that of its failure too, and another one the next time", async () => {
  controller.add("a");
  await run({
    gather: () => undefined,
    reconcile: async (_, { logger }) => {
      logger.info({ step: "dig" }, "step taken");
      throw new Error("stone");
    },
  });
  clock.advance(100);
  await settle();
  expect(lines.map(({ bed, message }) => `${bed}: ${message}`)).toEqual([
    ...["a: step taken", "a: reconcile failed, trying again"],
    ...["a: step taken", "a: reconcile failed, trying again"],
  ]);
  const ids = lines.map(({ reconcileId }) => reconcileId);
  expect(ids[0]).toMatch(/^[0-9a-f]{8}$/);
  expect(ids[1]).toBe(ids[0]);
  expect(ids[3]).toBe(ids[2]);
  expect(ids[2]).not.toBe(ids[0]);
  expect(lines[1]).toMatchObject({ err: new Error("stone"), failures: 1 });
});

test("an error that no retry mends is not retried, nor told as a failure", async () => {
  let looks = 0;
  controller.add("a");
  await run({
    gather: () => undefined,
    reconcile: async () => {
      looks += 1;
      return stalled();
    },
  });
  clock.advance(600_000);
  await settle();
  expect(looks).toBe(1);
  expect(lines).toEqual([]);
  expect(reports).toMatchObject([{ key: "a", outcome: "done" }]);
  controller.add("a");
  await settle();
  expect(looks).toBe(2);
});

test("changes of a cache are reasons to reconcile, those of a kind that comes in crowds after a while", async () => {
  const store = new Store<ConfigMap>();
  const looked: string[] = [];
  controller.watch(store, ({ key }) => [key]);
  controller.watch(store, () => ["all"], 1_000);
  await run({
    gather: (key) => key,
    reconcile: async (key) => {
      looked.push(key);
      return done;
    },
  });
  for (const name of ["a", "b"]) store.put(bed(name));
  await settle();
  expect(looked).toEqual(["g/a", "g/b"]);
  clock.advance(1_000);
  await settle();
  expect(looked).toEqual(["g/a", "g/b", "all"]);
});

test("changes of a cache are reasons to reconcile only from the beginning of a run to its end", async () => {
  const store = new Store<ConfigMap>();
  const looked: string[] = [];
  controller.watch(store, ({ key }) => [key]);
  controller.watch(store, () => ["all"], 1_000);
  store.put(bed("before"));
  clock.advance(1_000);
  expect(controller.depth).toBe(0);
  await run({
    gather: (key) => key,
    reconcile: async (key, { signal }) => {
      looked.push(key);
      await once(signal, "abort");
      return done;
    },
  });
  for (const name of ["active", "waiting"]) store.put(bed(name));
  expect(controller.depth).toBe(1);
  stop.abort();
  store.put(bed("ending"));
  await running;
  store.put(bed("after"));
  clock.advance(1_000);
  expect(controller.depth).toBe(0);
  stop = new AbortController();
  await run({
    gather: (key) => key,
    reconcile: async (key) => {
      looked.push(key);
      return done;
    },
  });
  store.put(bed("later"));
  await settle();
  expect(looked).toEqual(["g/active", "g/later"]);
});
