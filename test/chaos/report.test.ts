import { expect, test } from "vitest";
import { milliseconds, ReportJson, reportJson, worstOf } from "../bench/report.ts";
import { runsTogether, sloText } from "./document.ts";
import { formatMeasurement, isAllKept, Measurement, type Report } from "./report.ts";
import type { Round } from "./round.ts";

const round = (about: Partial<Round>): Round => ({
  ...{ downtimeMs: 0, attempts: 100, failedConnections: 0, errors: {}, failedBefore: 0, lostBefore: 0 },
  ...{
    surviving: 20,
    reset: 0,
    broken: 0,
    ofVictim: 7,
    lostOfOthers: 0,
    longestGapMs: 300,
    longestStallMs: 20,
    leaked: 0,
  },
  ...about,
});

const DEATH = {
  chaos: "kill-gateway",
  summary: "the gateway dies",
  expected: { mayReset: "of the gateway", downtimeMs: 1_000, resetMs: 1_500 },
} as const;

const RESTART = {
  chaos: "restart-program",
  summary: "its program is killed",
  expected: { mayReset: "none", downtimeMs: 0 },
} as const;

const measurement = (...reports: Measurement["reports"]): Measurement => ({
  ...{ commit: "0123456789ab", machine: "2 x Example, 8 GiB, virtualized nodes", setup: "3 nodes" },
  reports,
});

const good = measurement(
  {
    ...DEATH,
    selection: "Agent",
    rounds: [
      round({ downtimeMs: 600, failedConnections: 4, surviving: 14, reset: 6, slowestResetMs: 1_200 }),
      round({ downtimeMs: 800, failedConnections: 5, surviving: 15, reset: 5, slowestResetMs: 1_100 }),
    ],
  },
  {
    ...DEATH,
    selection: "Service",
    rounds: [round({ downtimeMs: 28_000, failedConnections: 90, broken: 7 })],
  },
);

test("people read what became of flows, and what Agent selection has kept", () => {
  expect(formatMeasurement(good)).toMatchInlineSnapshot(`
    "3 nodes
    2 x Example, 8 GiB, virtualized nodes; commit 0123456789ab; times are milliseconds

    chaos         selection  rounds  downtime p50  p99    max    surviving  reset  broken  of others  slowest reset  failed new  leaked  longest gap  longest stall
    kill-gateway  Agent      2       600           800    800    29         11     0       0          1200           9 of 200    0       300          20
    kill-gateway  Service    1       28000         28000  28000  20         0      7       0          -              90 of 100   0       300          20

    kill-gateway  flows that hang               0     at most 0: kept
    kill-gateway  flows of other gateways lost  0     at most 0: kept
    kill-gateway  downtime p99, ms              800   at most 1000: kept
    kill-gateway  slowest reset, ms             1200  at most 1500: kept
    kill-gateway  packets leaked                0     at most 0: kept"
  `);
});

test("a scenario that is broken off is missed, and its other rounds count", () => {
  const [death] = good.reports;
  const broken = measurement(
    { ...DEATH, selection: "Service", rounds: [], brokenOff: ["no cluster"] },
    death as Report,
  );
  expect(isAllKept(good)).toBe(true);
  expect(isAllKept(broken)).toBe(false);
  expect(formatMeasurement(broken)).toMatch(
    /^kill-gateway +rounds broken off: no cluster +1 +at most 0: MISSED$/m,
  );
  expect(sloText(new Map([["one", Measurement.parse(broken)]]))).toContain("rounds broken off: no cluster");
});

test.each([
  ["a flow of another gateway is lost", DEATH, { reset: 1, lostOfOthers: 1 }],
  ["a flow hangs", DEATH, { broken: 1 }],
  ["new connections fail for longer than a second", DEATH, { downtimeMs: 1_001 }],
  ["a flow is reset too late", DEATH, { reset: 1, slowestResetMs: 1_501 }],
  ["a packet leaks", DEATH, { leaked: 1 }],
  ["a flow is reset that must survive", RESTART, { reset: 1 }],
  ["a new connection fails that must not", RESTART, { failedConnections: 1 }],
])("Agent selection has not kept what it must when %s", (_, scenario, about) => {
  const bad = (selection: "Agent" | "Service") =>
    measurement({ ...scenario, selection, rounds: [round({}), round(about)] });
  expect(isAllKept(bad("Agent"))).toBe(false);
  expect(isAllKept(bad("Service"))).toBe(true);
});

test("what a scenario has counted must be none in all rounds together", () => {
  const counted = (...counts: readonly number[]) =>
    measurement({
      ...{ ...RESTART, selection: "Agent" },
      rounds: counts.map((count) => round({ counts: { "clients refused": { count, of: 30 } } })),
    });
  expect(isAllKept(counted(0, 0))).toBe(true);
  expect(isAllKept(counted(0, 1))).toBe(false);
  expect(formatMeasurement(counted(0, 1))).toMatch(/clients refused, of 60 +1 +at most 0: MISSED/);
});

test("what programs hold may not grow while all of it goes on for hours", () => {
  const held = (...samples: readonly number[]) => ({
    ...measurement({ ...RESTART, selection: "Agent", rounds: [round({})] }),
    holdings: [{ what: "node agent: memory, MiB", samples: [...samples] }],
  });
  expect(isAllKept(held(90, 100, 100, 140, 100, 90, 110, 105))).toBe(true);
  const growing = held(100, 100, 110, 115, 120, 125, 130, 130);
  expect(isAllKept(growing)).toBe(false);
  expect(formatMeasurement(growing)).toMatch(/all of it +node agent: memory, MiB +130 +at most 120: MISSED/);
  expect(sloText(new Map([["one", Measurement.parse(growing)]]))).toMatch(
    /all of it .*\| 120 .*\| 130 .*missed/,
  );
});

test("a connection that no flow has may not be left at all", () => {
  const left = (...samples: readonly number[]) => ({
    ...measurement({ ...RESTART, selection: "Agent", rounds: [round({})] }),
    holdings: [
      { what: "gateway: connections without a flow", samples: [...samples], isTransient: true as const },
    ],
  });
  expect(isAllKept(left(0, 0, 0, 0))).toBe(true);
  expect(isAllKept(left(0, 1, 0, 0))).toBe(false);
});

test("from three samples nobody can tell whether anything grows", () => {
  const few = {
    ...measurement({ ...RESTART, selection: "Agent", rounds: [round({})] }),
    holdings: [{ what: "operator: descriptors", samples: [30, 30, 30] }],
  };
  expect(isAllKept(few)).toBe(false);
  expect(formatMeasurement(few)).toContain("operator: descriptors: too few samples to tell");
});

test("flows of the gateway may hang where a scenario allows it, and others may not be lost", () => {
  const expected = { mayReset: "of the gateway", mayHang: true } as const;
  const lost = (lostOfOthers: number) =>
    measurement({
      ...{ ...DEATH, expected, selection: "Agent" },
      rounds: [round({ broken: 7, lostOfOthers, downtimeMs: 60_000, failedConnections: 90 })],
    });
  expect(isAllKept(lost(0))).toBe(true);
  expect(isAllKept(lost(1))).toBe(false);
});

test("what failed before anything was done is said, because it is the machine's", () => {
  const noisy = measurement({ ...RESTART, selection: "Agent", rounds: [round({ failedBefore: 2 })] });
  expect(formatMeasurement(noisy)).toContain(
    "restart-program, Agent: before anything was done 2 new connections failed, and 0 flows were lost",
  );
});

test("the document holds the figures of the JSON, with commit, machine and what was missed", () => {
  const missed = measurement({ ...RESTART, selection: "Agent", rounds: [round({ reset: 3 })] });
  const slo = runsTogether([
    ["deaths", Measurement.parse(JSON.parse(JSON.stringify(good)))],
    ["programs", Measurement.parse(JSON.parse(JSON.stringify(missed)))],
  ]);
  expect(sloText(slo).replace(sloText(new Map()), "")).toMatchInlineSnapshot(`
    "
    ## In short

    | chaos           | selection | rounds | flows lost | failed new | downtime max | what is to be kept     | measured in           |
    | --------------- | --------- | ------ | ---------- | ---------- | ------------ | ---------------------- | --------------------- |
    | kill-gateway    | Agent     | 2      | 11 of 40   | 9 of 200   | 800          | kept                   | [deaths](#deaths)     |
    | kill-gateway    | Service   | 1      | 7 of 27    | 90 of 100  | 28000        | -                      | [deaths](#deaths)     |
    | restart-program | Agent     | 1      | 3 of 23    | 0 of 100   | 0            | **missed**: flows lost | [programs](#programs) |

    ## deaths

    3 nodes. Commit 0123456789ab, on 2 x Example, 8 GiB, virtualized nodes.

    - \`kill-gateway\`: the gateway dies

    | chaos        | selection | rounds | downtime p50 | p99   | max   | surviving | reset | broken | of others | slowest reset | failed new | leaked | longest gap | longest stall |
    | ------------ | --------- | ------ | ------------ | ----- | ----- | --------- | ----- | ------ | --------- | ------------- | ---------- | ------ | ----------- | ------------- |
    | kill-gateway | Agent     | 2      | 600          | 800   | 800   | 29        | 11    | 0      | 0         | 1200          | 9 of 200   | 0      | 300         | 20            |
    | kill-gateway | Service   | 1      | 28000        | 28000 | 28000 | 20        | 0     | 7      | 0         | -             | 90 of 100  | 0      | 300         | 20            |

    With Agent selection:

    | chaos        | what                         | at most | measured |      |
    | ------------ | ---------------------------- | ------- | -------- | ---- |
    | kill-gateway | flows that hang              | 0       | 0        | kept |
    | kill-gateway | flows of other gateways lost | 0       | 0        | kept |
    | kill-gateway | downtime p99, ms             | 1000    | 800      | kept |
    | kill-gateway | slowest reset, ms            | 1500    | 1200     | kept |
    | kill-gateway | packets leaked               | 0       | 0        | kept |

    ## programs

    3 nodes. Commit 0123456789ab, on 2 x Example, 8 GiB, virtualized nodes.

    - \`restart-program\`: its program is killed

    | chaos           | selection | rounds | downtime p50 | p99 | max | surviving | reset | broken | of others | slowest reset | failed new | leaked | longest gap | longest stall |
    | --------------- | --------- | ------ | ------------ | --- | --- | --------- | ----- | ------ | --------- | ------------- | ---------- | ------ | ----------- | ------------- |
    | restart-program | Agent     | 1      | 0            | 0   | 0   | 20        | 3     | 0      | 0         | -             | 0 of 100   | 0      | 300         | 20            |

    With Agent selection:

    | chaos           | what                   | at most | measured |            |
    | --------------- | ---------------------- | ------- | -------- | ---------- |
    | restart-program | flows lost             | 0       | 3        | **missed** |
    | restart-program | new connections failed | 0       | 0        | kept       |
    | restart-program | packets leaked         | 0       | 0        | kept       |
    "
  `);
});

test("runs of one measurement are rounds of one, unless they differ in more than figures", () => {
  const run = (downtimeMs: number) =>
    measurement({ ...DEATH, selection: "Agent", rounds: [round({ downtimeMs })] });
  const together = runsTogether([
    ["agent", run(600)],
    ["agent", run(800)],
    ["service", run(9_000)],
  ]);
  expect([...together.keys()]).toEqual(["agent", "service"]);
  expect(together.get("agent")).toEqual(
    measurement({
      ...{ ...DEATH, selection: "Agent" },
      rounds: [round({ downtimeMs: 600 }), round({ downtimeMs: 800 })],
    }),
  );
  const other = { ...run(700), commit: "ba9876543210" };
  expect(() =>
    runsTogether([
      ["agent", run(600)],
      ["agent", other],
    ]),
  ).toThrow("runs of agent differ in commit");
});

test("each round that is broken off is one miss, in whatever run", () => {
  const brokenOff = (...why: readonly string[]) =>
    measurement({ ...DEATH, selection: "Agent", rounds: [], brokenOff: [...why] });
  const together = runsTogether([
    ["agent", good],
    ["agent", brokenOff("no cluster")],
    ["agent", brokenOff("no node")],
    ["agent", brokenOff("no cluster")],
  ]);
  expect(sloText(together)).toMatch(
    /kill-gateway +\| rounds broken off: no cluster; no node +\| 0 +\| 3 +\| \*\*missed/,
  );
});

test("what is measured on the machine itself stands beside it", () => {
  const steered = milliseconds("new flows go elsewhere", [600, 800, 700]);
  const report = { bench: "failover", setup: "on paper", series: [steered] };
  const targets = [worstOf(steered, { atMost: 1_000 }), worstOf(steered, { atMost: 700 })];
  const origin = { commit: "0123456789ab", machine: "2 x Example, 8 GiB" };
  const json = JSON.stringify(reportJson({ ...report, targets }, origin));
  expect(sloText(new Map([["failover", ReportJson.parse(JSON.parse(json))]]))).toContain(`## bench failover

on paper. Commit 0123456789ab, on 2 x Example, 8 GiB.

| what                   | unit | rounds | median | least | most |
| ---------------------- | ---- | ------ | ------ | ----- | ---- |
| new flows go elsewhere | ms   | 3      | 700    | 600   | 800  |

| what                              | limit        | measured |            |
| --------------------------------- | ------------ | -------- | ---------- |
| new flows go elsewhere: the worst | at most 1000 | 800      | kept       |
| new flows go elsewhere: the worst | at most 700  | 800      | **missed** |
`);
});
