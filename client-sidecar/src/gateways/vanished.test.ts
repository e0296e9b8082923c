import type { Clock, Endpoint } from "@egress-nat/kube";
import { heapInUse } from "@egress-nat/kube/testing/heap";
import { beforeEach, expect, test } from "vitest";
import { VanishedGateways } from "./vanished.ts";

const NAT = { namespace: "internet", name: "nat" };
const endpoint = (...addresses: string[]): Endpoint => ({
  ...{ name: "nat-1", addresses, nodeName: "node", ready: true, serving: true, terminating: false },
});
const dual = endpoint("10.244.1.1", "fd00:244:1::1");

let now: number;
let timers: { atMs: number; callback: () => void }[];
let forgotten: number;
let vanished: VanishedGateways;

beforeEach(() => {
  [now, timers, forgotten] = [0, [], 0];
  const clock: Clock = {
    now: () => now,
    after: (ms, callback) => {
      timers.push({ atMs: now + ms, callback });
      return () => undefined;
    },
  };
  vanished = new VanishedGateways(clock);
});

function note(atMs: number, ...named: readonly Endpoint[]): void {
  passTo(atMs);
  vanished.note(NAT, named, () => {
    forgotten += 1;
  });
}

function passTo(atMs: number): void {
  now = atMs;
  const due = timers.filter((timer) => timer.atMs <= atMs);
  timers = timers.filter((timer) => timer.atMs > atMs);
  for (const { callback } of due) callback();
}

function addresses(): readonly string[] {
  return vanished.of(NAT).flatMap((each) => each.addresses);
}

test("an address of one family is remembered while the other one is named", () => {
  note(0, dual);
  note(0, endpoint("fd00:244:1::1"));
  expect(addresses()).toEqual(["10.244.1.1"]);
  note(1);
  expect(addresses()).toEqual(["10.244.1.1", "fd00:244:1::1"]);
  note(2, dual);
  expect(addresses()).toEqual([]);
});

test("each address is forgotten after ten seconds, and that is told", () => {
  note(0, dual);
  note(0);
  passTo(9_999);
  expect([addresses().length, forgotten]).toEqual([2, 0]);
  passTo(10_000);
  expect([addresses().length, forgotten]).toEqual([0, 2]);
});

test("one that was named again in the meantime is remembered for ten seconds anew", () => {
  note(0, dual);
  note(0);
  note(1_000, dual);
  note(9_000);
  passTo(18_999);
  expect([addresses().length, forgotten]).toEqual([2, 0]);
  passTo(19_000);
  expect([addresses().length, forgotten]).toEqual([0, 2]);
});

test("another sandbox of the same pod is no reason to forget the one before", () => {
  note(0, endpoint("10.244.1.1"));
  note(0, endpoint("10.244.1.9"));
  expect(addresses()).toEqual(["10.244.1.1"]);
});

test("nothing is kept of Egresses that have lost no gateway", () => {
  const before = heapInUse();
  for (let index = 0; index < 10_000; index += 1)
    vanished.note({ namespace: "internet", name: `nat-${index}` }, [], () => undefined);
  expect(heapInUse() - before).toBeLessThan(500_000);
  expect(addresses()).toEqual([]);
});
