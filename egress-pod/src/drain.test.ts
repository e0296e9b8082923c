import { createLogger } from "@egress-nat/program";
import { expect, test } from "vitest";
import { type DrainOptions, drain } from "./drain.ts";

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

/** @returns what ended the drain, and after how many seconds */
async function draining(options: Partial<DrainOptions> & { readonly flowsAt?: (second: number) => number }) {
  const clock = passingClock();
  const { flowsAt = () => 1, ...rest } = options;
  const drained = await drain({
    hasClients: () => true,
    liveFlows: async () => flowsAt(clock.now() / 1000),
    timeoutMs: () => 60_000,
    logger: createLogger({ name: "test", level: "silent" }),
    clock,
    ...rest,
  });
  return [drained, clock.now() / 1000];
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

test("flows that cannot be counted may be there", async () => {
  const liveFlows = async () => {
    throw new Error("conntrack: not found");
  };
  expect(await draining({ liveFlows })).toEqual(["timeout", 60]);
});
