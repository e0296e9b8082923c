import { setImmediate as nextTurn } from "node:timers/promises";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ClientRecord } from "../state/record.ts";
import { agentMetrics } from "../testing/agent-metrics.ts";
import { clientRecord } from "../testing/client-record.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { RefusalSampler } from "./refusal-sampler.ts";

const logger = createLogger({ name: "test", level: "silent" });
const FAKED = ["setTimeout", "clearTimeout", "performance", "Date"] as const;

let networks: FakeNetworks;
let clients: ClientRecord[];
let isIdle: boolean;
let metrics: Registry;
let looks: { readonly netns: string; readonly at: number }[];
let stop: () => Promise<void>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...FAKED] });
  networks = new FakeNetworks();
  looks = [];
  const refusals = networks.refusals.bind(networks);
  networks.refusals = (netns) => {
    looks.push({ netns, at: Date.now() });
    return refusals(netns);
  };
  clients = [];
  isIdle = true;
});

afterEach(async () => {
  await stop();
  vi.useRealTimers();
});

/** An agent starts. */
function start(): void {
  metrics = new Registry();
  const sampler = new RefusalSampler({
    registry: { values: () => clients },
    networks,
    reapplier: {
      get isIdle() {
        return isIdle;
      },
    },
    metrics: agentMetrics(metrics),
    logger,
  });
  const ended = new AbortController();
  const running = sampler.run(ended.signal);
  stop = async () => {
    ended.abort();
    await running;
  };
}

const netnsOf = (index: number) => `/run/netns/c${index}`;

function addClients(count: number): void {
  for (let index = clients.length; index < count; index += 1) {
    clients.push(clientRecord({ containerId: `c${index}`, netns: netnsOf(index) }));
  }
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
  start();
  expect(await counted()).toEqual({ rejected: 0, unheard: 0 });
  networks.refused.set(netnsOf(0), { rejected: 3, unheard: 0 });
  networks.refused.set(netnsOf(1), { rejected: 4, unheard: 1 });
  addClients(2);
  await pass(7_000);
  expect(await counted()).toEqual({ rejected: 7, unheard: 1 });
  networks.refused.set(netnsOf(0), { rejected: 5, unheard: 2 });
  await pass(66_000);
  expect(await counted()).toEqual({ rejected: 9, unheard: 3 });
});

test("they never go down: neither when a guard's counts begin anew, nor when its client ends", async () => {
  start();
  networks.refused.set(netnsOf(0), { rejected: 10, unheard: 1 });
  addClients(1);
  await pass(4_000);
  networks.refused.set(netnsOf(0), { rejected: 2, unheard: 0 });
  await pass(66_000);
  expect(await counted()).toEqual({ rejected: 12, unheard: 1 });
  clients = [];
  await pass(66_000);
  expect(await counted()).toEqual({ rejected: 12, unheard: 1 });
});

test("a client with a network namespace of a former one's name counts anew", async () => {
  start();
  networks.refused.set(netnsOf(0), { rejected: 10, unheard: 0 });
  addClients(1);
  await pass(4_000);
  clients = [];
  await pass(4_000);
  networks.refused.set(netnsOf(0), { rejected: 11, unheard: 0 });
  addClients(1);
  await pass(4_000);
  expect(await counted()).toEqual({ rejected: 21, unheard: 0 });
});

test("what was refused before the agent started is not told as if it were new", async () => {
  networks.refused.set(netnsOf(0), { rejected: 1_000, unheard: 7 });
  addClients(1);
  start();
  await pass(4_000);
  expect(await counted()).toEqual({ rejected: 0, unheard: 0 });
  networks.refused.set(netnsOf(0), { rejected: 1_001, unheard: 7 });
  await pass(66_000);
  expect(await counted()).toEqual({ rejected: 1, unheard: 0 });
});

test("a client is looked at once a minute", async () => {
  addClients(2);
  start();
  await pass(600_000);
  for (const { netns } of clients) {
    const at = looks.filter((look) => look.netns === netns).map((look) => look.at);
    expect(at.length).toBeGreaterThanOrEqual(9);
    expect(Math.min(...at.slice(1).map((time, index) => time - (at[index] ?? 0)))).toBeGreaterThanOrEqual(
      60_000,
    );
  }
});

test("of a hundred clients one is looked at every 3 s, each in its turn", async () => {
  addClients(110);
  start();
  await pass(660_000);
  expect(looks.length).toBeGreaterThanOrEqual(215);
  const gaps = looks.slice(1).map(({ at }, index) => at - (looks[index]?.at ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(3_000);
  expect(new Set(looks.slice(0, 110).map(({ netns }) => netns)).size).toBe(110);
});

test("what Egresses, gateways and repairs ask for comes first", async () => {
  isIdle = false;
  addClients(1);
  start();
  await pass(10_000);
  expect(looks).toEqual([]);
  isIdle = true;
  await pass(3_000);
  expect(looks).toHaveLength(1);
});

test("a guard that cannot be read, or is not there, keeps nobody else from being counted", async () => {
  start();
  const { refusals } = networks;
  networks.refusals = (netns) =>
    netns === netnsOf(0) ? Promise.reject(new Error("not understood")) : refusals(netns);
  networks.refused.set(netnsOf(2), { rejected: 2, unheard: 0 });
  addClients(3);
  await pass(10_000);
  expect(await counted()).toEqual({ rejected: 2, unheard: 0 });
});
