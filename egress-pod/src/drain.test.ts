import { createLogger } from "@egress-nat/program";
import { expect, test } from "vitest";
import { type DrainOptions, type DrainProgress, drain } from "./drain.ts";

/** Time that passes only by being waited for. */
function passingClock() {
  let nowMs = 0;
  return {
    now: () => nowMs,
    after: (delayMs: number, callback: () => void) => {
      nowMs += delayMs;
      queueMicrotask(callback);
      return () => undefined;
    },
  };
}

interface Scene extends Partial<DrainOptions> {
  readonly flowsAt?: (second: number) => number;
}

/** @returns what ended the drain, and after how many seconds */
async function draining(options: Scene) {
  const { drained } = await drainingTo(options);
  return [drained.reason, drained.elapsedMs / 1000];
}

/** @returns how it ended, and what was told meanwhile */
async function drainingTo(options: Scene) {
  const clock = passingClock();
  const told: DrainProgress[] = [];
  const { flowsAt = () => 1, ...rest } = options;
  const drained = await drain({
    hasClients: () => true,
    liveFlows: async () => flowsAt(clock.now() / 1000),
    timeoutMs: () => 60_000,
    onProgress: (progress) => told.push(progress),
    logger: createLogger({ name: "test", level: "silent" }),
    clock,
    ...rest,
  });
  return { drained, told };
}

test("it lasts until the last flow is over", async () => {
  expect(await draining({ flowsAt: (second) => (second < 20 ? 3 : 0) })).toEqual(["idle", 20]);
});

test("without a flow it lasts until the proxies of all nodes have heard of it", async () => {
  expect(await draining({ flowsAt: () => 0 })).toEqual(["idle", 5]);
});

test("without a client it ends at once", async () => {
  expect(await draining({ hasClients: () => false })).toEqual(["unused", 0]);
});

test("flows that do not end are cut off when the time is over", async () => {
  expect(await draining({})).toEqual(["timeout", 60]);
  expect(await draining({ timeoutMs: () => 0 })).toEqual(["timeout", 0]);
});

test("it tells each second how many flows are left, and what is left at the end", async () => {
  const { drained, told } = await drainingTo({ flowsAt: (second) => 7 - second });
  expect(told).toEqual(
    [7, 6, 5, 4, 3, 2, 1, 0].map((flows, second) => ({ flows, elapsedMs: second * 1000, timeoutMs: 60_000 })),
  );
  expect(drained).toEqual({ reason: "idle", flows: 0, elapsedMs: 7000 });
  expect((await drainingTo({ flowsAt: () => 3 })).drained).toMatchObject({ reason: "timeout", flows: 3 });
});

test("where flows take long to count, it is over in time all the same", async () => {
  const clock = passingClock();
  const liveFlows = async () => {
    clock.after(5_000, () => undefined);
    return 3;
  };
  expect((await drainingTo({ clock, liveFlows })).drained).toMatchObject({
    reason: "timeout",
    elapsedMs: 60_000,
  });
});

test("no flow is counted once the time is over, and what is told is how long it was", async () => {
  const clock = passingClock();
  let counted = 0;
  const liveFlows = async () => {
    counted += 1;
    clock.after(8_000, () => undefined);
    return 3;
  };
  const { drained, told } = await drainingTo({ clock, liveFlows, timeoutMs: () => 15_000 });
  expect([drained, counted]).toEqual([{ reason: "timeout", flows: 3, elapsedMs: 15_000 }, 1]);
  expect(told).toEqual([{ flows: 3, elapsedMs: 8_000, timeoutMs: 15_000 }]);
});

test("a count that began before the proxies have heard of the drain says nothing of flows that have begun since", async () => {
  const clock = passingClock();
  const liveFlows = async () => {
    clock.after(6_000, () => undefined);
    return 0;
  };
  const { drained } = await drainingTo({ clock, liveFlows, timeoutMs: () => 120_000 });
  expect(drained).toEqual({ reason: "idle", flows: 0, elapsedMs: 72_000 });
});

test("flows that cannot be counted may be there", async () => {
  const liveFlows = async () => {
    throw new Error("conntrack: not found");
  };
  const { drained } = await drainingTo({ liveFlows });
  expect(drained).toEqual({ reason: "timeout", flows: undefined, elapsedMs: 60_000 });
});
