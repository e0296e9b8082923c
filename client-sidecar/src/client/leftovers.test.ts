import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { clientRecord } from "../testing/client-record.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { Leftovers } from "./leftovers.ts";

const record = clientRecord();
const { netns } = record;
const logger = createLogger({ name: "test", level: "silent" });

let networks: FakeNetworks;
let owner: typeof record | undefined;
let leftovers: Leftovers;
let ended: AbortController;

beforeEach(async () => {
  vi.useFakeTimers();
  networks = new FakeNetworks();
  owner = undefined;
  leftovers = new Leftovers({ registry: { owner: () => owner }, networks, logger });
  ended = new AbortController();
  void leftovers.run(ended.signal);
  await networks.apply(netns, { uplink: "eth0", egresses: [], clusterRanges: [] });
});

afterEach(() => {
  ended.abort();
  vi.useRealTimers();
});

test("a namespace that outlives its client is cleaned once its interface is gone, and not before", async () => {
  networks.attached.add(netns);
  leftovers.add(record);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(networks.applied.has(netns)).toBe(true);
  networks.attached.delete(netns);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(networks.applied.has(netns)).toBe(false);
});

test("one that has another client by then is left to that", async () => {
  leftovers.add(record);
  owner = clientRecord({ containerId: "other" });
  await vi.advanceTimersByTimeAsync(2_000);
  owner = undefined;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(networks.applied.has(netns)).toBe(true);
});

test("one whose interface stays is guarded for good", async () => {
  networks.attached.add(netns);
  leftovers.add(record);
  await vi.advanceTimersByTimeAsync(120_000);
  networks.attached.delete(netns);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(networks.applied.has(netns)).toBe(true);
});
