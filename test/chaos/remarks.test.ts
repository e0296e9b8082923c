import { expect, test } from "vitest";
import type { Flow, LoadReport } from "./load-report.ts";
import { remarksOn } from "./remarks.ts";

const flow = (about: Partial<Flow>): Flow => ({
  ...{ protocol: "tcp", target: "203.0.113.10", isIdle: false, gateway: "10.0.0.1", end: "survived" },
  ...{ longestGapMs: 0, longestGapAtMs: 0 },
  ...about,
});

const report = (failed: number, ...flows: readonly Flow[]): LoadReport => {
  const failures = Array.from({ length: failed }, (_, index) => ({
    ...{ atMs: 1_500 + index, failedAtMs: 2_500 + index, error: "timeout" },
    ...(index === 1 && { connectedAtMs: 1_900.4 }),
  }));
  const connections = [{ target: "203.0.113.10", successesMs: [], failures }];
  return { markedAtMs: 1_000, endedAtMs: 60_000, longestStallMs: 4, flows: [...flows], connections };
};

test("new connections that failed are told, and the surviving flow that waited longest", () => {
  const flows = [
    flow({ longestGapMs: 200 }),
    flow({ longestGapMs: 1_248.3, longestGapAtMs: 3_000, gateway: "fd00::2", target: "2001:db8::10" }),
    flow({ longestGapMs: 9_000, end: "broken" }),
  ];
  expect(remarksOn(report(2, ...flows))).toEqual([
    "a new connection to 203.0.113.10 at 500 ms: no handshake, timeout at 1500 ms",
    "a new connection to 203.0.113.10 at 501 ms: handshake at 900 ms, timeout at 1501 ms",
    "a tcp flow to 2001:db8::10 by gateway fd00::2 waited longest: 1248 ms from 2000 ms on",
  ]);
});

test("of many failures the first are told", () => {
  const remarks = remarksOn(report(12));
  expect(remarks).toHaveLength(11);
  expect(remarks.at(-1)).toBe("2 more new connections failed");
});

test("when flows were reset is told, and which of them were the last", () => {
  const reset = (endedAtMs: number, isIdle: boolean) =>
    flow({ end: "reset", endedAtMs, isIdle, error: "connection reset by peer" });
  const flows = [reset(1_900, false), reset(2_000, false), reset(2_100, true), reset(53_400.4, true)];
  expect(remarksOn(report(0, ...flows))).toEqual([
    "4 flows were reset, half of them until 1000 ms",
    "an idle flow to 203.0.113.10 by gateway 10.0.0.1 was reset at 52400 ms: connection reset by peer",
    "an idle flow to 203.0.113.10 by gateway 10.0.0.1 was reset at 1100 ms: connection reset by peer",
    "a busy flow to 203.0.113.10 by gateway 10.0.0.1 was reset at 1000 ms: connection reset by peer",
  ]);
});
