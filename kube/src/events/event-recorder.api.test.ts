import { afterAll, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { FakeClock } from "../testing/fake-clock.ts";
import { createNamespace } from "../testing/namespace.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { createTransport } from "../transport/https-transport.ts";
import { loadCredentials } from "../transport/load-credentials.ts";
import type { Transport } from "../transport/transport.ts";
import { EventRecorder, type RecordedEvent } from "./event-recorder.ts";

let transport: Transport;
let namespace: string;
let clock: FakeClock;
let recorder: EventRecorder;
let event: RecordedEvent;

beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger: silentLogger });
});

afterAll(() => transport.close());

beforeEach(async () => {
  namespace = await createNamespace(transport, "events");
  clock = new FakeClock();
  const options = { component: "garden.example.com/gardener", instance: "gardener-1" };
  recorder = new EventRecorder({ transport, logger: silentLogger, clock, ...options });
  event = {
    regarding: { apiVersion: "v1", kind: "ConfigMap", namespace, name: "bed" },
    type: "Warning",
    reason: "Dry",
    action: "Water",
    message: "no rain for a week",
  };
});

interface StoredEvent {
  readonly metadata: { readonly name: string };
  readonly note: string;
  readonly type: string;
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
}

async function stored(): Promise<StoredEvent[]> {
  const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
  return (await transport.request<{ items: StoredEvent[] }>({ method: "GET", path })).items;
}

test("an event is there for kubectl describe", async () => {
  recorder.record(event);
  await recorder.close();
  expect(await stored()).toMatchObject([
    {
      type: "Warning",
      reason: "Dry",
      action: "Water",
      note: "no rain for a week",
      regarding: { kind: "ConfigMap", name: "bed" },
      reportingController: "garden.example.com/gardener",
      reportingInstance: "gardener-1",
    },
  ]);
});

test("an event that happens again and again is one event with a count", async () => {
  for (let i = 0; i < 100; i += 1) recorder.record(event);
  await recorder.close();
  const [only, ...others] = await stored();
  expect(others).toEqual([]);
  expect(only?.series?.count).toBe(100);
});

test("the count of a series that goes on is written every few minutes, without an end", async () => {
  recorder.record(event);
  recorder.record(event);
  recorder.record(event);
  clock.advance(6 * 60_000);
  await recorder.close();
  expect((await stored()).map(({ series }) => series?.count)).toEqual([3]);
});

test("after a quiet while the same event is a new one", async () => {
  recorder.record(event);
  clock.advance(6 * 60_000);
  recorder.record(event);
  await recorder.close();
  expect(await stored()).toHaveLength(2);
});

test("a message that differs is an event of its own", async () => {
  recorder.record(event);
  recorder.record({ ...event, message: "no rain for a month" });
  await recorder.close();
  expect((await stored()).map(({ note }) => note).sort()).toEqual([
    "no rain for a month",
    "no rain for a week",
  ]);
});

test("an object about which too much is said is muted, and others are not", async () => {
  for (let day = 0; day < 100; day += 1) recorder.record({ ...event, message: `no rain for ${day} days` });
  recorder.record({ ...event, regarding: { ...event.regarding, name: "other" } });
  await recorder.close();
  expect(await stored()).toHaveLength(26);
});

test("what the apiserver would refuse for its length is shortened", async () => {
  const name = "n".repeat(253);
  recorder.record({ ...event, regarding: { ...event.regarding, name }, message: "ü".repeat(600) });
  await recorder.close();
  const [only] = await stored();
  expect(Buffer.byteLength(only?.note ?? "")).toBeLessThanOrEqual(1024);
  expect(only?.note).toMatch(/ü…$/);
});
