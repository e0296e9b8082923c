import type { GatewayReport, GatewayStatus } from "@egress-nat/crds";
import { describe, expect, test } from "vitest";
import type { Pulse } from "../gateways/pulse.ts";
import { nextStance, type Sight, type Stance } from "./report.ts";

const TIME = "2026-01-02T03:04:05Z";

/** A node alone, unless a test says otherwise; what it sees, one after the other, in milliseconds since it began. */
function stanceAfter(
  ...sights: readonly (Partial<Sight> & { readonly nowMs: number })[]
): Stance | undefined {
  const usual = { gateway: "nat-1", pulse: "dead", told: "Ready", nodes: 1 } as const;
  let stance: Stance | undefined;
  for (const sight of sights) {
    const time = new Date(Date.parse(TIME) + sight.nowMs).toISOString();
    stance = nextStance(stance, { ...usual, time, ...sight }, () => 0.5);
  }
  return stance;
}

describe("a gateway that does not answer", () => {
  test("is reported at once by the only node, with the time of its last change", () => {
    expect(stanceAfter({ pulse: "alive", nowMs: 0 })?.report).toBeUndefined();
    const suspect = { gateway: "nat-1", state: "Suspect", since: "2026-01-02T03:04:05.000Z" };
    expect(stanceAfter({ pulse: "suspect", nowMs: 0 })?.report).toEqual(suspect);
    const down = { gateway: "nat-1", state: "Down", since: "2026-01-02T03:04:05.700Z" };
    expect(stanceAfter({ pulse: "suspect", nowMs: 0 }, { nowMs: 700 }, { nowMs: 900 })?.report).toEqual(down);
  });

  test.each([
    ["suspect", "Suspect"],
    ["suspect", "Down"],
    ["dead", "Down"],
    ["dead", "Draining"],
    ["dead", undefined],
  ] as const)("is not reported as %s where the status says %s", (pulse, told) => {
    expect(stanceAfter({ pulse, told, nowMs: 0 }, { pulse, told, nowMs: 90_000 })?.report).toBeUndefined();
  });

  test("is reported as dead where the status says that it is suspect", () => {
    expect(stanceAfter({ told: "Suspect", nowMs: 0 })?.report?.state).toBe("Down");
  });

  test("is reported after a wait where there are others, and only if none of them has done so", () => {
    const others = { nodes: 5 };
    const [first, last] = [
      { ...others, nowMs: 0 },
      { ...others, nowMs: 1000 },
    ];
    expect(stanceAfter(first)?.report).toBeUndefined();
    expect(stanceAfter(first, last)?.report?.state).toBe("Down");
    expect(stanceAfter(first, { ...last, told: "Down" })?.report).toBeUndefined();
    // The one that had reported it is gone.
    expect(stanceAfter(first, { ...last, told: "Down" }, last)?.report).toBeUndefined();
  });

  test("is taken back once it has answered for a while, and not while it comes and goes", () => {
    const back = (nowMs: number) => ({ pulse: "alive", told: "Down", nowMs }) as const;
    expect(stanceAfter({ nowMs: 0 }, back(1000), back(5900))?.report?.state).toBe("Down");
    expect(stanceAfter({ nowMs: 0 }, back(1000), back(6000))?.report).toBeUndefined();
    expect(stanceAfter({ nowMs: 0 }, back(1000), { nowMs: 2000 }, back(6000))?.report?.state).toBe("Down");
  });
});

/** Mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Cluster {
  readonly seed: number;
  readonly nodes: number;
  /** Of the nodes, by their number: how many clients each has. */
  readonly clientsOf?: (node: number) => number;
  /** No status is written before. */
  readonly operatorSinceMs?: number;
}

const STEP_MS = 500;
const PUBLISH_MS = 1000;
const RECOVERS_AT_MS = 120_000;

/** A gateway dies, and serves again after two minutes. @returns when slices are written, in milliseconds */
function writesIn({ seed, nodes, clientsOf = () => 1, operatorSinceMs = 0 }: Cluster) {
  const random = randomOf(seed);
  const clients = Array.from({ length: nodes }, (_, node) => clientsOf(node));
  const all = clients.reduce((sum, own) => sum + own, 0);
  const stances: (Stance | undefined)[] = Array(nodes).fill(undefined);
  const writes = { dying: [] as number[], back: [] as number[] };
  const published: { atMs: number; state: GatewayStatus["state"] }[] = [];
  let told: GatewayStatus["state"] = "Ready";
  for (let nowMs = 0; nowMs < RECOVERS_AT_MS + 60_000; nowMs += STEP_MS) {
    const pulse = pulseAt(nowMs);
    while (published[0] !== undefined && published[0].atMs <= nowMs) told = published.shift()?.state ?? told;
    let isWritten = false;
    for (const [node, own] of clients.entries()) {
      const before = stances[node];
      const sight = { gateway: "nat-1", pulse, told, nowMs, time: TIME, nodes: Math.ceil(all / own) };
      const after = nextStance(before, sight, random);
      stances[node] = after;
      if (before?.report?.state === after.report?.state) continue;
      isWritten = true;
      (nowMs < RECOVERS_AT_MS ? writes.dying : writes.back).push(nowMs);
    }
    const reports = stances.flatMap((stance) => stance?.report ?? []);
    if (isWritten)
      published.push({ atMs: Math.max(nowMs, operatorSinceMs) + PUBLISH_MS, state: worst(reports) });
  }
  return { ...writes, told };
}

function pulseAt(nowMs: number): Pulse {
  if (nowMs < 1000 || nowMs >= RECOVERS_AT_MS) return "alive";
  return nowMs < 2000 ? "suspect" : "dead";
}

function worst(reports: readonly GatewayReport[]): GatewayStatus["state"] {
  return reports.some(({ state }) => state === "Down") ? "Down" : (reports[0]?.state ?? "Ready");
}

const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);

describe("a gateway that dies", () => {
  const nodes = 1000;
  test.each([
    ["as a rule", 5, { nodes }],
    ["where clients are spread unevenly", 5, { nodes, clientsOf: (node: number) => 1 + (node % 50) }],
    // Leader election may take that long.
    ["while the operator is away for 15 s", 20, { nodes, operatorSinceMs: 16_000 }],
  ])("is reported by few of 1,000 nodes, which take it back: %s", (_, most, cluster) => {
    for (const seed of SEEDS) {
      const { dying, back, told } = writesIn({ seed, ...cluster });
      expect(dying.length).toBeGreaterThan(0);
      expect(dying.length).toBeLessThanOrEqual(most);
      expect(back).toHaveLength(dying.length);
      expect(told).toBe("Ready");
    }
  });
});
