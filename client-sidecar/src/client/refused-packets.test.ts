import { setImmediate as nextTurn } from "node:timers/promises";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ClientRecord } from "../records/schema.ts";
import { agentMetrics } from "../testing/agent-metrics.ts";
import { clientRecord } from "../testing/client-record.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { runInBackground } from "../testing/in-background.ts";
import { DriftWatch } from "./drift-watch.ts";

const logger = createLogger({ name: "test", level: "silent" });
const FAKED = ["setTimeout", "clearTimeout", "performance", "Date"] as const;

let networks: FakeNetworks;
let clients: ClientRecord[];
let metrics: Registry;
let stop: () => Promise<void>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...FAKED] });
  networks = new FakeNetworks();
  clients = [];
});

afterEach(async () => {
  await stop();
  vi.useRealTimers();
});

/** An agent starts. */
async function start(): Promise<void> {
  metrics = new Registry();
  const watch = new DriftWatch({
    registry: { values: () => clients },
    networks,
    reapplier: { reapply: () => undefined, isIdle: true },
    metrics: agentMetrics(metrics),
    logger,
  });
  stop = runInBackground(watch);
  await pass(1_000);
}

const netnsOf = (index: number) => `/run/netns/c${index}`;

async function addClients(count: number): Promise<void> {
  for (let index = clients.length; index < count; index += 1) {
    clients.push(clientRecord({ containerId: `c${index}`, netns: netnsOf(index) }));
  }
  await pass(1_000);
}

async function removeClients(): Promise<void> {
  clients = [];
  await pass(1_000);
}

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await vi.advanceTimersByTimeAsync(500);
    await nextTurn();
  }
}

async function counted(): Promise<Record<string, number>> {
  const metric = await metrics.getSingleMetric("egress_nat_agent_refused_packets_total")?.get();
  return Object.fromEntries((metric?.values ?? []).map(({ labels, value }) => [labels.reason, value]));
}

test("what clients' guards refuse is in the metrics, from zero on", async () => {
  await start();
  expect(await counted()).toEqual({ rejected: 0, unheard: 0 });
  networks.refuse(netnsOf(0), { rejected: 3, unheard: 0 });
  networks.refuse(netnsOf(1), { rejected: 4, unheard: 1 });
  await addClients(2);
  expect(await counted()).toEqual({ rejected: 7, unheard: 1 });
  networks.refuse(netnsOf(0), { rejected: 5, unheard: 2 });
  expect(await counted()).toEqual({ rejected: 9, unheard: 3 });
});

test("they never go down: neither when a guard's counts begin anew, nor when its client ends", async () => {
  await start();
  networks.refuse(netnsOf(0), { rejected: 10, unheard: 1 });
  await addClients(1);
  networks.refuse(netnsOf(0), { rejected: 2, unheard: 0 });
  expect(await counted()).toEqual({ rejected: 12, unheard: 1 });
  await removeClients();
  expect(await counted()).toEqual({ rejected: 12, unheard: 1 });
});

test("a client with a network namespace of a former one's name counts anew", async () => {
  await start();
  networks.refuse(netnsOf(0), { rejected: 10, unheard: 0 });
  await addClients(1);
  await removeClients();
  networks.refuse(netnsOf(0), { rejected: 11, unheard: 0 });
  await addClients(1);
  expect(await counted()).toEqual({ rejected: 21, unheard: 0 });
});

test("so does one whose former one has ended while the watch was down", async () => {
  await start();
  networks.refuse(netnsOf(0), { rejected: 10, unheard: 0 });
  await addClients(1);
  networks.endWatch("perl: not found");
  clients = [];
  await pass(5_000);
  networks.refuse(netnsOf(0), { rejected: 11, unheard: 0 });
  await addClients(1);
  expect(await counted()).toEqual({ rejected: 21, unheard: 0 });
});

test("what was refused before the agent started is not told as if it were new", async () => {
  networks.refuse(netnsOf(0), { rejected: 1_000, unheard: 7 });
  clients = [clientRecord({ containerId: "c0", netns: netnsOf(0) })];
  await start();
  expect(await counted()).toEqual({ rejected: 0, unheard: 0 });
  networks.refuse(netnsOf(0), { rejected: 1_001, unheard: 7 });
  expect(await counted()).toEqual({ rejected: 1, unheard: 0 });
});

test("nothing counts twice: neither what a watch that begins anew tells again, nor what comes late of a client", async () => {
  await start();
  networks.refuse(netnsOf(0), { rejected: 10, unheard: 0 });
  await addClients(1);
  networks.endWatch("perl: not found");
  await pass(5_000);
  expect(networks.watched.size).toBe(1);
  expect(await counted()).toEqual({ rejected: 10, unheard: 0 });
  await removeClients();
  networks.watched.add(netnsOf(0));
  networks.refuse(netnsOf(0), { rejected: 11, unheard: 0 });
  expect(await counted()).toEqual({ rejected: 10, unheard: 0 });
});
