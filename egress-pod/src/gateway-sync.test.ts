import type { GatewayClient, GatewayConfig } from "@egress-nat/founat";
import { expect, test } from "vitest";
import type { DesiredState } from "./desired-state.ts";
import { GatewaySync } from "./gateway-sync.ts";

const CONFIG: GatewayConfig = {
  port: 5555,
  sourcePortAuto: false,
  destinations: ["0.0.0.0/0"],
  excluded: [],
};
const A: GatewayClient = { id: "a", addresses: ["10.0.0.1"] };
const B: GatewayClient = { id: "b", addresses: ["10.0.0.2"] };

function state(generation: number, clients: readonly GatewayClient[], config = CONFIG): DesiredState {
  return {
    config,
    clients: new Map(clients.map((client) => [client.id, client])),
    slices: new Map([["slice", generation]]),
  };
}

const MISSING = { object: "chain", text: "nft chain is missing" };

/** Writes down what is asked of the gateway, and fails when it is told to. */
function recorder() {
  const calls: string[] = [];
  const failing = new Set<string>();
  const record = (call: string, detail: unknown) => {
    calls.push(`${call} ${JSON.stringify(detail)}`);
    if (failing.has(call)) throw new Error(`${call} failed`);
  };
  const sync = new GatewaySync(({ destinations: created }) => {
    record("create", created);
    return {
      configure: async ({ destinations }) => record("configure", destinations),
      sync: async (clients) =>
        record(
          "sync",
          [...clients].map(({ id }) => id),
        ),
      update: async ({ put = [], remove = [] }) =>
        record("update", { put: [...put].map(({ id }) => id), remove: [...remove] }),
      check: async () => [MISSING],
      repair: async () => record("repair", null),
      drops: async () => new Map(),
      transactions: { begun: 0, succeeded: 0 },
    };
  });
  return { calls, failing, sync };
}

test("the first state is applied in full, later ones by their differences", async () => {
  const { calls, sync } = recorder();
  await sync.apply(state(1, [A]));
  await sync.apply(state(2, [A, B]));
  await sync.apply(state(3, [B], { ...CONFIG, destinations: ["192.0.2.0/24"] }));
  await sync.apply(state(4, [B], { ...CONFIG, destinations: ["192.0.2.0/24"] }));
  expect(calls).toEqual([
    'create ["0.0.0.0/0"]',
    'configure ["0.0.0.0/0"]',
    'sync ["a"]',
    'update {"put":["b"],"remove":[]}',
    'configure ["192.0.2.0/24"]',
    'update {"put":[],"remove":["a"]}',
  ]);
});

test("a slice counts as applied only when the rule set is committed", async () => {
  const { sync, failing } = recorder();
  expect(sync.applied).toBeUndefined();
  await sync.apply(state(1, [A]));
  expect(sync.applied?.slices.get("slice")).toBe(1);
  const applying = sync.apply(state(2, [A, B]));
  expect(sync.applied?.slices.get("slice")).toBe(1);
  await applying;
  expect(sync.applied?.slices.get("slice")).toBe(2);
  failing.add("update");
  await expect(sync.apply(state(3, [A]))).rejects.toThrow("update failed");
  expect(sync.applied).toBeUndefined();
});

test("after an error the same gateway, which knows what it could not do, compares everything with the kernel", async () => {
  const { calls, sync, failing } = recorder();
  await sync.apply(state(1, [A]));
  failing.add("update");
  await expect(sync.apply(state(2, [A, B]))).rejects.toThrow("update failed");
  failing.clear();
  calls.length = 0;
  await sync.apply(state(2, [A, B]));
  expect(calls).toEqual(['configure ["0.0.0.0/0"]', 'sync ["a","b"]']);
  expect(sync.applied?.clients.size).toBe(2);
});

test("what was prepared is not done again; another configuration is", async () => {
  const { calls, sync } = recorder();
  await sync.prepare(CONFIG);
  await sync.prepare(CONFIG);
  await sync.apply(state(1, [A]));
  expect(calls).toEqual(['create ["0.0.0.0/0"]', 'configure ["0.0.0.0/0"]', 'sync ["a"]']);
  const other = recorder();
  await other.sync.prepare(CONFIG);
  await other.sync.apply(state(1, [A], { ...CONFIG, destinations: ["192.0.2.0/24"] }));
  expect(other.calls.slice(1)).toEqual([
    'configure ["0.0.0.0/0"]',
    'configure ["192.0.2.0/24"]',
    'sync ["a"]',
  ]);
});

test("what was prepared does not count any more once another configuration has failed half-way", async () => {
  const { calls, failing, sync } = recorder();
  await sync.prepare(CONFIG);
  failing.add("configure");
  await expect(sync.prepare({ ...CONFIG, destinations: ["192.0.2.0/24"] })).rejects.toThrow(
    "configure failed",
  );
  failing.clear();
  await sync.prepare(CONFIG);
  expect(calls.at(-1)).toBe('configure ["0.0.0.0/0"]');
});

test("after a failure nothing counts as prepared", async () => {
  const { calls, failing, sync } = recorder();
  await sync.prepare(CONFIG);
  failing.add("sync");
  await expect(sync.apply(state(1, [A]))).rejects.toThrow("sync failed");
  failing.clear();
  await sync.apply(state(1, [A]));
  expect(calls.slice(-2)).toEqual(['configure ["0.0.0.0/0"]', 'sync ["a"]']);
});

test("what another one has changed is put right without anything else; a failure makes all of it uncertain", async () => {
  const { calls, failing, sync } = recorder();
  await sync.apply(state(1, [A]));
  calls.length = 0;
  expect(await sync.check({ elements: true })).toEqual([MISSING]);
  await sync.repair();
  expect(calls).toEqual(["repair null"]);
  expect(sync.applied).toBeDefined();
  failing.add("repair");
  await expect(sync.repair()).rejects.toThrow("repair failed");
  expect(sync.applied).toBeUndefined();
});
