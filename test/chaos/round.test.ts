import { expect, test } from "vitest";
import type { Connections, Flow, LoadReport } from "./load-report.ts";
import { roundOf } from "./round.ts";

const VICTIM = ["10.0.0.1", "fd00::1"];
const MARKED_AT_MS = 1_000;

const flow = (about: Partial<Flow>): Flow => ({
  ...{ protocol: "tcp", target: "203.0.113.10", isIdle: false, gateway: "10.0.0.1", end: "survived" },
  ...{ longestGapMs: 0, longestGapAtMs: 0 },
  ...about,
});

const report = (about: Partial<LoadReport>): LoadReport => ({
  ...{ markedAtMs: MARKED_AT_MS, endedAtMs: 61_000, longestStallMs: 4, flows: [], connections: [] },
  ...about,
});

/** One new connection every 100 ms for a minute; those of some times, in seconds since the mark, fail. */
function connections(...failed: readonly (readonly [fromS: number, toS: number])[]): Connections {
  const beganMs = Array.from({ length: 610 }, (_, index) => index * 100);
  const isFailed = (atMs: number) =>
    failed.some(([fromS, toS]) => {
      const sinceS = (atMs - MARKED_AT_MS) / 1000;
      return sinceS >= fromS && sinceS < toS;
    });
  return {
    target: "203.0.113.10",
    successesMs: beganMs.filter((atMs) => !isFailed(atMs)),
    failures: beganMs.filter(isFailed).map((atMs) => ({ atMs, failedAtMs: atMs, error: "timeout" })),
  };
}

const downtimeMs = (...failed: readonly (readonly [number, number])[]) =>
  roundOf([report({ connections: [connections(...failed)] })], VICTIM, 0).downtimeMs;

test("new connections do not work from the first that fails to the first good one after which none fails", () => {
  expect(downtimeMs()).toBe(0);
  expect(downtimeMs([2, 2.8])).toBe(800);
  expect(downtimeMs([2, 2.8], [4, 4.1])).toBe(2_100);
});

test("what fails after a calm time is an outage of its own, and the longest one counts", () => {
  expect(downtimeMs([2, 2.8], [10, 10.4])).toBe(800);
});

test("new connections that fail to the end never worked again", () => {
  expect(downtimeMs([50, 60])).toBe(10_000);
});

test("the client that has waited longest counts", () => {
  const reports = [[1, 2] as const, [1, 1.5] as const].map((failed) =>
    report({ connections: [connections(failed)] }),
  );
  expect(roundOf(reports, VICTIM, 0).downtimeMs).toBe(1_000);
});

test("new connections that failed before the mark are the machine's", () => {
  const round = roundOf([report({ connections: [connections([-0.5, 0], [5, 5.3])] })], VICTIM, 0);
  expect(round).toMatchObject({
    attempts: 600,
    failedConnections: 3,
    failedBefore: 5,
    errors: { timeout: 3 },
  });
});

test("one that began before the mark and failed after it is of the scenario", () => {
  const failures = [{ atMs: MARKED_AT_MS - 20, failedAtMs: MARKED_AT_MS + 980, error: "timeout" }];
  const all = { ...connections(), failures };
  const round = roundOf([report({ connections: [all] })], VICTIM, 0);
  expect(round).toMatchObject({ failedConnections: 1, failedBefore: 0, downtimeMs: 100 });
});

test("flows are counted by their end, and by whether their gateway is the one that was taken", () => {
  const flows = [
    flow({ end: "reset", endedAtMs: 1_900 }),
    flow({ end: "reset", endedAtMs: 2_200, gateway: "fd00::1" }),
    flow({ end: "broken", endedAtMs: 1_100, gateway: "10.0.0.2" }),
    flow({ longestGapMs: 350.4 }),
  ];
  expect(roundOf([report({ flows })], VICTIM, 7)).toMatchObject({
    ...{ surviving: 1, reset: 2, broken: 1, ofVictim: 3, lostOfOthers: 1, lostBefore: 0 },
    ...{ slowestResetMs: 1_200, longestGapMs: 350, longestStallMs: 4, leaked: 7 },
  });
});

test("a flow that ended before the mark is not of the scenario", () => {
  const flows = [flow({ end: "reset", endedAtMs: 900 }), flow({})];
  const round = roundOf([report({ flows })], VICTIM, 0);
  expect(round).toMatchObject({ surviving: 1, reset: 0, lostBefore: 1 });
  expect(round.slowestResetMs).toBeUndefined();
});
