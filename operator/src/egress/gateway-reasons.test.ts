import { setImmediate as nextTurn } from "node:timers/promises";
import type { Endpoint } from "@egress-nat/kube";
import { FakeClock } from "@egress-nat/kube/testing/fake-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GatewayReasons } from "./gateway-reasons.ts";

const KEY = "internet/nat";
const down = { nodeName: "n1", ready: false, serving: false, terminating: false };

let clock: FakeClock;
let gateways: Endpoint[];
let answers: Map<string, string>;
let asked: string[];
let changed: string[];
let ask: (address: string) => Promise<string | undefined>;
let reasons: GatewayReasons;
let stop: AbortController;
let running: Promise<void>;

beforeEach(() => {
  clock = new FakeClock();
  gateways = [{ ...down, name: "nat-1", addresses: ["10.244.1.7"] }];
  answers = new Map([["10.244.1.7", "no forwarding"]]);
  asked = [];
  changed = [];
  ask = async (address) => {
    asked.push(address);
    return answers.get(address);
  };
  reasons = new GatewayReasons({
    gateways: () => gateways,
    isInside: (address) => address.startsWith("10.244."),
    ask: (address) => ask(address),
    onChange: (key) => changed.push(key),
    clock,
  });
  stop = new AbortController();
  running = reasons.run(stop.signal);
});

afterEach(async () => {
  stop.abort();
  await running;
});

/** Lets time pass, and the work of that time be done. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    clock.advance(1_000);
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  }
}

const told = () => [...reasons.of(KEY)];

describe("a gateway that is not ready", () => {
  test("is asked after a while, and again until it is", async () => {
    expect(told()).toEqual([]);
    await pass(9);
    expect(asked).toEqual([]);
    await pass(2);
    expect(told()).toEqual([["nat-1", "no forwarding"]]);
    expect(changed).toEqual([KEY]);
    await pass(10);
    expect(asked).toHaveLength(2);
    expect(changed).toEqual([KEY]);

    answers.set("10.244.1.7", "not listed yet");
    await pass(10);
    expect(told()).toEqual([["nat-1", "not listed yet"]]);
    gateways = [{ ...down, name: "nat-1", addresses: ["10.244.1.7"], ready: true }];
    expect(told()).toEqual([]);
    await pass(40);
    expect(asked).toHaveLength(3);
  });

  test("that starts and is ready in time is never asked", async () => {
    told();
    await pass(5);
    gateways = [];
    await pass(20);
    expect(asked).toEqual([]);
  });

  test("that gives no reason is named for it after a minute, until it gives one", async () => {
    answers.clear();
    told();
    await pass(55);
    expect(told()).toEqual([]);
    await pass(10);
    expect(told()).toEqual([["nat-1", expect.stringMatching(/^it has given no reason for a minute: /)]]);
    expect(changed).toEqual([KEY]);
    answers.set("10.244.1.7", "no forwarding");
    await pass(10);
    expect(told()).toEqual([["nat-1", "no forwarding"]]);
  });

  test("keeps its reason while an answer is lost, and is silent only after a minute", async () => {
    told();
    await pass(11);
    answers.clear();
    await pass(50);
    expect(told()).toEqual([["nat-1", "no forwarding"]]);
    expect(changed).toEqual([KEY]);
    await pass(10);
    expect(told()).toEqual([["nat-1", expect.stringMatching(/^it has given no reason for a minute: /)]]);
  });

  test("has its reason no longer once it answers without one, and is silent after a minute of that", async () => {
    told();
    await pass(11);
    answers.set("10.244.1.7", "");
    await pass(10);
    expect(told()).toEqual([]);
    expect(changed).toEqual([KEY, KEY]);
    await pass(60);
    expect(told()).toEqual([["nat-1", expect.stringMatching(/^it has given no reason for a minute: /)]]);
  });

  test("is not asked where its address is not the cluster's, nor where it is about to end", async () => {
    gateways = [
      { ...down, name: "nat-1", addresses: ["169.254.169.254"] },
      { ...down, name: "nat-2", addresses: ["10.244.1.8"], terminating: true },
    ];
    told();
    await pass(30);
    expect(asked).toEqual([]);
  });

  test("is asked beside no more than fifteen others of its Egress", async () => {
    gateways = Array.from({ length: 200 }, (_, index) => ({
      ...{ ...down, name: `nat-${index}` },
      addresses: [`10.244.2.${index}`],
    }));
    told();
    await pass(11);
    expect(asked).toHaveLength(16);
  });
});

test("a question that is broken off at the end tells nothing", async () => {
  const question = Promise.withResolvers<string>();
  ask = () => question.promise;
  told();
  await pass(11);
  stop.abort();
  question.resolve("no forwarding");
  await running;
  expect(changed).toEqual([]);
});
