import { setImmediate as nextTurn } from "node:timers/promises";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ClientRecord } from "../records/schema.ts";
import { agentMetrics } from "../testing/agent-metrics.ts";
import { clientRecord } from "../testing/client-record.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { runInBackground } from "../testing/in-background.ts";
import { DriftWatch } from "./drift-watch.ts";

const logger = createLogger({ name: "test", level: "silent" });
const complaints = vi.spyOn(logger, "error");
/** The queue lets others have a turn between two keys: that is not a matter of time. */
const FAKED = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] as const;

let networks: FakeNetworks;
let clients: ClientRecord[];
let looks: { readonly client: string; readonly at: number }[];
let isIdle: boolean;
let watch: DriftWatch;
let stop: () => Promise<void>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...FAKED] });
  vi.clearAllMocks();
  networks = new FakeNetworks();
  clients = [];
  looks = [];
  isIdle = true;
  watch = new DriftWatch({
    registry: { values: () => clients },
    networks,
    reapplier: {
      reapply: (found) =>
        looks.push(...found.map(({ containerId }) => ({ client: containerId, at: Date.now() }))),
      get isIdle() {
        return isIdle;
      },
    },
    metrics: agentMetrics(),
    logger,
  });
  stop = runInBackground(watch);
});

afterEach(async () => {
  await stop();
  vi.useRealTimers();
});

function addClients(count: number): void {
  for (let index = clients.length; index < count; index += 1) {
    clients.push(clientRecord({ containerId: `c${index}`, netns: `/run/netns/c${index}` }));
  }
}

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 25) {
    await vi.advanceTimersByTimeAsync(25);
    await nextTurn();
  }
}

/** Until what the watch itself asks for is over. */
async function settle(): Promise<void> {
  await pass(15_000);
  looks.length = 0;
}

test("a client that was changed is looked at within a second, one that was not is left alone", async () => {
  addClients(2);
  await settle();
  networks.wipe("/run/netns/c1");
  await pass(1_000);
  expect(looks.map(({ client }) => client)).toEqual(["c1"]);
  await pass(60_000);
  expect(looks).toHaveLength(1);
});

test("a hundred clients that are changed at once are looked at one after the other, within 15 s", async () => {
  addClients(110);
  await settle();
  const changedAt = Date.now();
  for (const { netns } of clients) networks.wipe(netns);
  await pass(15_000);
  expect(new Set(looks.map(({ client }) => client)).size).toBe(110);
  const gaps = looks.slice(1).map(({ at }, index) => at - (looks[index]?.at ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(50);
  expect(looks[0]?.at).toBeLessThan(changedAt + 1_000);
});

test("a client that somebody changes without end is looked at every 5 s, and does not hold up others", async () => {
  addClients(2);
  await settle();
  const endless = setInterval(() => networks.wipe("/run/netns/c0"), 10);
  await pass(10_000);
  networks.wipe("/run/netns/c1");
  await pass(1_000);
  clearInterval(endless);
  const [fought, other] = ["c0", "c1"].map((name) => looks.filter(({ client }) => client === name));
  expect(fought?.length).toBeLessThanOrEqual(3);
  expect(other).toHaveLength(1);
});

test("what Egresses and gateways ask for comes first", async () => {
  addClients(1);
  await settle();
  isIdle = false;
  networks.wipe("/run/netns/c0");
  await pass(2_000);
  expect(looks).toEqual([]);
  isIdle = true;
  await pass(100);
  expect(looks).toHaveLength(1);
});

test("what takes Egresses and gateways without end keeps no client from being looked at within 15 s", async () => {
  addClients(110);
  await settle();
  isIdle = false;
  for (let round = 0; round < 2; round += 1) {
    const changedAt = Date.now();
    for (const { netns } of clients) networks.wipe(netns);
    await pass(15_000);
    const seen = looks.filter(({ at }) => at >= changedAt);
    expect(new Set(seen.map(({ client }) => client)).size).toBe(110);
    expect(seen[0]?.at).toBeGreaterThan(changedAt + 2_000);
  }
});

test("clients are watched from their first second on, and their namespaces let go of in the last", async () => {
  await settle();
  addClients(1);
  await pass(1_000);
  expect([...networks.watched]).toEqual(["/run/netns/c0"]);
  clients = [];
  await pass(1_000);
  expect([...networks.watched]).toEqual([]);
});

test("a namespace that is not there yet is tried again", async () => {
  networks.gone.add("/run/netns/c0");
  addClients(1);
  await settle();
  expect(networks.watched.size).toBe(0);
  networks.gone.clear();
  await pass(1_000);
  expect(networks.watched.size).toBe(1);
});

test("a watch that ends is said to have, is started again, and every client is looked at", async () => {
  addClients(2);
  await settle();
  networks.endWatch("perl: not found");
  await pass(25);
  const reasons = ["changes in clients' network namespaces are not noticed: perl: not found"];
  expect(watch.check).toEqual({ ok: false, reasons });
  expect(complaints).toHaveBeenCalledOnce();
  await pass(5_000);
  expect(watch.check.ok).toBe(true);
  expect(networks.watched.size).toBe(2);
  expect(looks.map(({ client }) => client).sort()).toEqual(["c0", "c1"]);
});

test("a client that comes after the watch was down is not taken for a former one with a namespace of that name", async () => {
  addClients(1);
  await settle();
  networks.wipe("/run/netns/c0");
  await pass(1_000);
  looks.length = 0;
  networks.endWatch("perl: not found");
  clients = [];
  await pass(2_000);
  addClients(1);
  await pass(1_500);
  expect(looks.map(({ client }) => client)).toEqual(["c0"]);
});

test("a namespace that cannot be watched is let go of with its client", async () => {
  networks.gone.add("/run/netns/c0");
  addClients(1);
  await settle();
  expect([...networks.forgotten]).toEqual([]);
  clients = [];
  await pass(1_000);
  expect([...networks.forgotten]).toEqual(["/run/netns/c0"]);
});
