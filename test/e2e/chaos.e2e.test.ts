import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster } from "../bed/cluster/cluster.ts";
import { isKept, verdicts } from "../chaos/expected.ts";
import { type Ground, makeGround, prepare, removeGround } from "../chaos/ground.ts";
import { measureRound } from "../chaos/measure.ts";
import type { Round } from "../chaos/round.ts";
import { SCENARIOS } from "../chaos/scenarios.ts";
import type { Scenario } from "../chaos/scene.ts";
import { describeOnline, kubectl, world } from "./kit/world.ts";

const LOAD = { flows: 20, rate: 4 };
/**
 * For how long clients go on, less than `npm run chaos` has them, and for how long new connections may fail: emulated
 * nodes need more time than the product may take, but less than until the end.
 */
const SHORT: readonly (readonly [name: string, lastsMs: number, downtimeMs: number])[] = [
  ["restart-program", 15_000, 5_000],
  ["kill-gateway", 30_000, 20_000],
  ["rollout", 10_000, 0],
];

/** What a round waits for has bounds of its own: slow machines need minutes to replace gateways one after the other. */
const ROUND_TIMEOUT_MS = 1_200_000;

describeOnline("flows, and new connections all the time, of clients whose gateways the agent picks", () => {
  let ground: Ground;

  beforeAll(async () => {
    const cluster = await Cluster.open(world.cluster ?? "");
    await prepare(cluster, kubectl);
    ground = await makeGround(cluster, kubectl, "Agent");
  });
  afterAll(() => removeGround(ground));

  test(
    "end with a round that is broken off",
    async () => {
      const brokenOff = new Error("broken off");
      const scenario: Scenario = {
        ...{ summary: "nothing is done", lastsMs: 0, expected: { mayReset: "none" } },
        act: () => Promise.reject(brokenOff),
      };
      await expect(measureRound(ground, scenario, LOAD, () => {})).rejects.toBe(brokenOff);
      const loads = ground.cluster.nodes.map((node) => node.run("pgrep --full '^/chaos-load load ' || true"));
      expect((await Promise.all(loads)).join("")).toBe("");
    },
    ROUND_TIMEOUT_MS,
  );

  test.each(SHORT)(
    "keep what %s must not take",
    async (name, lastsMs, downtimeMs) => {
      const scenario = SCENARIOS[name];
      if (scenario === undefined) return expect.fail("there is no such scenario");
      const rounds: Round[] = [];
      await measureRound(ground, { ...scenario, lastsMs }, LOAD, (round) => rounds.push(round));
      console.log(name, JSON.stringify(rounds));
      // How soon emulated nodes reset flows is no measure of the product; those that are never reset hang.
      const expected = { ...scenario.expected, downtimeMs, resetMs: undefined };
      expect(verdicts(expected, rounds).filter((verdict) => !isKept(verdict))).toEqual([]);
    },
    ROUND_TIMEOUT_MS,
  );
});
