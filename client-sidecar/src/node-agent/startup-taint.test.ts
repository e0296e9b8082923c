import { type Clock, retryableError } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { removeStartupTaint, type TaintedNode } from "./startup-taint.ts";

const KEY = "example.com/not-ready";

const logger = createLogger({ name: "test", level: "silent" });

let tainted: boolean;
let ok: boolean;
let failure: Error | undefined;
let looks: number;
/** How long was waited, each time, in milliseconds: the waits themselves take no time. */
let waits: number[];
let ended: AbortController;
let running: Promise<void>;
let logged: MockInstance;

const node = (): TaintedNode => ({
  metadata: { name: "node-1", resourceVersion: "1" },
  spec: { taints: tainted ? [{ key: KEY, effect: "NoSchedule" }] : [] },
});

beforeEach(() => {
  [tainted, ok, failure, looks, waits, ended] = [true, true, undefined, 0, [], new AbortController()];
  logged = vi.spyOn(logger, "info");
  const clock: Clock = {
    now: () => 0,
    after: (delayMs, callback) => {
      waits.push(delayMs);
      setImmediate(callback);
      return () => undefined;
    },
  };
  const nodes = {
    get: async () => {
      looks += 1;
      if (failure !== undefined) throw failure;
      return node();
    },
    patch: async () => {
      tainted = false;
      return node();
    },
  };
  running = removeStartupTaint(
    { nodes, nodeName: "node-1", key: KEY, ready: () => ({ ok, reasons: [] }), logger, clock },
    ended.signal,
  );
});

afterEach(async () => {
  ended.abort();
  await running;
  vi.restoreAllMocks();
});

const looksMore = (count: number) => {
  const before = looks;
  return vi.waitFor(() => expect(looks).toBeGreaterThanOrEqual(before + count));
};

test("a taint that comes back is removed again, and only removals are in the log", async () => {
  await vi.waitFor(() => expect(tainted).toBe(false));
  await looksMore(5);
  expect(logged).toHaveBeenCalledTimes(1);
  tainted = true;
  await vi.waitFor(() => expect(tainted).toBe(false));
  await looksMore(1);
  expect(logged).toHaveBeenCalledTimes(2);
});

test("a node without the taint is looked at about every five minutes, and nodes do not look together", async () => {
  await looksMore(50);
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(150_000);
  expect(Math.max(...waits)).toBeLessThanOrEqual(450_000);
  expect(new Set(waits).size).toBeGreaterThan(40);
});

test("a taint that comes back stays while the node is not ready for clients", async () => {
  await vi.waitFor(() => expect(tainted).toBe(false));
  [ok, tainted] = [false, true];
  const before = looks;
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(looks).toBe(before);
  expect(tainted).toBe(true);
  ok = true;
  await vi.waitFor(() => expect(tainted).toBe(false));
});

test("a look that fails is tried again sooner", async () => {
  await vi.waitFor(() => expect(tainted).toBe(false));
  failure = retryableError("Unreachable", "nobody is there");
  await looksMore(3);
  expect(waits.at(-1)).toBeLessThanOrEqual(30_000);
  failure = undefined;
  await looksMore(5);
  expect(waits.at(-1)).toBeGreaterThanOrEqual(150_000);
});
