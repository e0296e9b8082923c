import { hostname } from "node:os";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { DrainProgress } from "./drain.ts";
import { DrainReport } from "./drain-report.ts";
import type { GatewayEvent } from "./gateway-event.ts";

const TIMEOUT_MS = 300_000;
const GATEWAY = `Gateway ${hostname()}`;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2026-01-02T03:04:05Z") });
});
afterEach(() => vi.useRealTimers());

function setUp() {
  const events: GatewayEvent[] = [];
  const lines: unknown[] = [];
  const logger = createLogger({ name: "test", level: "silent" });
  for (const level of ["info", "warn"] as const) {
    vi.spyOn(logger, level).mockImplementation((keys: unknown, message?: string) => {
      lines.push([level, message, (keys as DrainProgress).flows]);
    });
  }
  const report = new DrainReport({ recordEvent: (event) => events.push(event), logger });
  const progress = (second: number, flows: number | undefined) =>
    report.progress({ flows, elapsedMs: second * 1000, timeoutMs: TIMEOUT_MS });
  return { report, progress, events, lines };
}

test("an event says at the start how many flows there are, and until when they are served", () => {
  const { progress, events } = setUp();
  for (const second of [0, 1, 2]) progress(second, 12);
  expect(events).toEqual([
    {
      ...{ type: "Normal", reason: "GatewayDraining", action: "Drain" },
      message:
        `${GATEWAY} is being terminated and has 12 flows. ` +
        "It serves until they are over, at the latest until 2026-01-02T03:09:05.000Z (300 s).",
    },
  ]);
});

test.each([
  ["idle", "no flow is left"],
  ["unused", "no client is left"],
] as const)("an event says at the end how long it took: %s", (reason, why) => {
  const { report, progress, events } = setUp();
  progress(0, 2);
  report.end({ reason, flows: 0, elapsedMs: 41_600 });
  expect(events.slice(1)).toEqual([
    {
      ...{ type: "Normal", reason: "GatewayDrained", action: "Drain" },
      message: `${GATEWAY} has drained in 42 s: ${why}.`,
    },
  ]);
});

test.each([
  ["1 flow", 1],
  ["3 flows", 3],
  ["an unknown number of flows", undefined],
])("a warning says that %s are cut off, and what helps", (words, flows) => {
  const { report, progress, events, lines } = setUp();
  progress(0, flows);
  report.end({ reason: "timeout", flows, elapsedMs: TIMEOUT_MS });
  expect(events[0]?.message).toContain(`has ${words}.`);
  expect(events[1]).toEqual({
    ...{ type: "Warning", reason: "GatewayDrained", action: "Drain" },
    message:
      `${GATEWAY} has drained for 300 s and cuts off ${words}. ` +
      "If flows need longer, raise spec.drainTimeoutSeconds of the Egress, and terminationGracePeriodSeconds if its template has it.",
  });
  expect(lines.at(-1)).toEqual(["warn", "drain time is over, cutting flows off", flows]);
});

test("without a client there is nothing to tell of but the end, in the log", () => {
  const { report, events, lines } = setUp();
  report.end({ reason: "unused", flows: 0, elapsedMs: 0 });
  expect(events).toEqual([]);
  expect(lines).toEqual([["info", "drained", 0]]);
});

test("the log says every 30 seconds how many flows are left, as long as there are any", () => {
  const { report, progress, lines } = setUp();
  for (let second = 0; second < 100; second += 1) progress(second, second < 70 ? 100 - second : 0);
  report.end({ reason: "idle", flows: 0, elapsedMs: 100_000 });
  expect(lines).toEqual([
    ["info", "draining", 100],
    ["info", "still draining", 70],
    ["info", "still draining", 40],
    ["info", "drained", 0],
  ]);
});

test("the number of flows is that of the last count, 0 before the drain, and NaN where they cannot be counted", () => {
  const { report, progress } = setUp();
  expect(report.flows).toBe(0);
  progress(0, 3);
  expect(report.flows).toBe(3);
  progress(1, undefined);
  expect(report.flows).toBeNaN();
});
