import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kernelHere } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EgressView } from "../gateways/view.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { agentMetrics } from "../testing/agent-metrics.ts";
import { clientRecord } from "../testing/client-record.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { runInBackground } from "../testing/in-background.ts";
import { locationsIn } from "../testing/locations.ts";
import { livesOf } from "./lives.ts";
import type { PodEvent } from "./pod.ts";
import { Reapplier } from "./reapplier.ts";
import { ClientRegistry } from "./registry.ts";

const logger = createLogger({ name: "test", level: "silent" });
const record = clientRecord();

let folder: string;
let networks: FakeNetworks;
/** Namespaces in which no command ends. */
let stuck: ReadonlySet<string>;
let events: PodEvent[];
let metrics: Registry;
let clusterRanges: string[];
let registry: ClientRegistry;
let reapplier: Reapplier;
let stop: () => Promise<void>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  folder = mkdtempSync(join(tmpdir(), "egress-nat-reapplier-"));
  stuck = new Set();
  const kernel = kernelHere({ silenceMs: 500 });
  networks = new FakeNetworks(async (netns) => {
    if (stuck.has(netns)) await kernel.exec("sleep", ["600"]);
  });
  events = [];
  metrics = new Registry();
  clusterRanges = ["10.96.0.0/16"];
  registry = new ClientRegistry(new NodeState(locationsIn(folder), logger));
  registry.add(record);
  const view = {
    egress: () => undefined,
    gateways: () => [],
    get clusterRanges() {
      return clusterRanges;
    },
  };
  const withdrawals = { scan: () => undefined };
  reapplier = new Reapplier({
    registry,
    view: view as unknown as EgressView,
    networks,
    lives: livesOf({ registry, networks, withdrawals, leftovers: { add: () => undefined }, logger }),
    withdrawals,
    recordEvent: (_pod, event) => events.push(event),
    metrics: agentMetrics(metrics),
    logger,
  });
  stop = runInBackground(reapplier);
});

afterEach(async () => {
  await stop();
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

/** By then all is told that there is to tell. */
async function minuteLater(): Promise<void> {
  await vi.advanceTimersByTimeAsync(60_000);
}

async function look(): Promise<void> {
  reapplier.reapply([record]);
  await vi.waitFor(() => expect(reapplier.isIdle).toBe(true));
}

const warning = (reason: string, message: string): PodEvent => ({ type: "Warning", reason, message });

async function repairs(): Promise<number> {
  const { values } = await (metrics.getSingleMetric("egress_nat_agent_drift_repairs_total")?.get() ??
    Promise.reject(new Error("no such metric")));
  return values.reduce((sum, { value }) => sum + value, 0);
}

test("what somebody else has changed is repaired, told of in an event, and counted", async () => {
  await look();
  expect(events).toEqual([]);
  networks.wipe(record.netns);
  await look();
  expect(networks.applied.has(record.netns)).toBe(true);
  await minuteLater();
  expect(events).toEqual([
    warning(
      "NetworkRepaired",
      "another program changed the network namespace of the pod, and the agent repaired it: route 192.0.2.0/24 is missing",
    ),
  ]);
  expect(await metrics.metrics()).toContain('egress_nat_agent_drift_repairs_total{object="route"} 1');
});

test("routes that a program in the pod has added are followed, and told of as that", async () => {
  await look();
  networks.localRoutes.set(record.netns, ["0.0.0.0/1", "128.0.0.0/1"]);
  await look();
  await minuteLater();
  expect(events).toEqual([
    warning(
      "LocalRoutesFollowed",
      "the pod has routes of its own, such as those of a VPN or a second network: packets to 0.0.0.0/1, 128.0.0.0/1 use no gateway of a wide destination",
    ),
  ]);
  expect(await repairs()).toBe(0);
  networks.localRoutes.delete(record.netns);
  networks.wipe(record.netns);
  await look();
  await minuteLater();
  expect(events.slice(1)).toEqual([expect.objectContaining({ reason: "NetworkRepaired" })]);
  expect(await repairs()).toBe(1);
});

test("what an Egress, a gateway or the cluster has changed is none", async () => {
  await look();
  clusterRanges = ["10.96.0.0/16", "10.97.0.0/16"];
  await look();
  expect(networks.applied.get(record.netns)?.clusterRanges).toEqual(clusterRanges);
  await minuteLater();
  expect(events).toEqual([]);
  expect(await repairs()).toBe(0);
});

test("nor is what steering has left, with the configuration that it has led back to", async () => {
  await look();
  networks.wipe(record.netns);
  reapplier.expectChanges(record);
  await look();
  await minuteLater();
  expect(events).toEqual([]);
  expect(await repairs()).toBe(0);
});

test("nor is what an agent that has just started finds: a former one may have been another version", async () => {
  networks.wipe(record.netns);
  await look();
  await minuteLater();
  expect(events).toEqual([]);
});

test("nor is what a runtime takes from a pod that ends, before it says so by DEL", async () => {
  await look();
  networks.wipe(record.netns);
  await look();
  registry.bury(recordId(record));
  await minuteLater();
  expect(events).toEqual([]);
  expect(await repairs()).toBe(0);
});

test("nor is what a client needs that was added anew, as a runtime does after a failed ADD", async () => {
  await look();
  registry.bury(recordId(record));
  networks.wipe(record.netns);
  registry.add({ ...record, addedAt: "2026-01-01T00:00:01.000Z" });
  await look();
  await minuteLater();
  expect(events).toEqual([]);
});

test("namespaces of nobody any more are forgotten", async () => {
  await reapplier.sweep();
  expect(networks.kept).toEqual(new Set([record.netns]));
  registry.bury(recordId(record));
  await reapplier.sweep();
  expect(networks.kept).toEqual(new Set());
});

test("what goes on to fail is told of in an event, once until it is done", async () => {
  const failed = warning(
    "NetworkNotRepaired",
    "the network namespace of the pod cannot be brought up to date, and the agent tries again: no such device",
  );
  for (const told of [[failed], [failed, failed]]) {
    networks.failure = new Error("no such device");
    reapplier.reapply([record]);
    await minuteLater();
    expect(events).toEqual(told);
    networks.failure = undefined;
    await minuteLater();
    expect(networks.applied.has(record.netns)).toBe(true);
  }
});

test("what fails as long as a pod takes to end is not", async () => {
  networks.failure = new Error("no such device");
  reapplier.reapply([record]);
  await vi.advanceTimersByTimeAsync(5_000);
  registry.bury(recordId(record));
  await minuteLater();
  expect(events).toEqual([]);
});

test("clients whose commands hang, as many as are looked at in a time, hold up no other for long, and are tried again", async () => {
  const others = [1, 2, 3, 4].map((number) =>
    clientRecord({ containerId: `stuck-${number}`, netns: `/run/netns/stuck-${number}`, addresses: [] }),
  );
  stuck = new Set(others.map(({ netns }) => netns));
  for (const other of others) {
    registry.add(other);
    reapplier.reapply([other]);
  }
  reapplier.reapply([record]);
  await vi.waitFor(() => expect([...networks.applied.keys()]).toEqual([record.netns]), { timeout: 5_000 });
  stuck = new Set();
  await vi.waitFor(() => expect(networks.applied.size).toBe(5), { timeout: 5_000 });
});

test("a look that was overtaken says nothing, and is not tried again by itself", async () => {
  networks.isOvertaken = true;
  await look();
  expect(networks.applied.size).toBe(0);
  expect(await metrics.metrics()).not.toMatch(/egress_nat_agent_reapplied_total\{.*\} [1-9]/);
  await look();
  expect(networks.applied.size).toBe(1);
});

test("the look that follows a steering is due until it was made to its end", async () => {
  await look();
  expect(reapplier.isDue(record)).toBe(false);
  reapplier.expectLook(record);
  networks.isOvertaken = true;
  await look();
  expect(reapplier.isDue(record)).toBe(true);
  await look();
  expect(reapplier.isDue(record)).toBe(false);
  const apply = vi.spyOn(networks, "apply").mockImplementationOnce(async () => {
    reapplier.expectLook(record);
    return { differences: [], localRoutes: [] };
  });
  await look();
  expect([apply.mock.calls.length, reapplier.isDue(record)]).toEqual([1, true]);
});
