import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster } from "../bed/cluster/cluster.ts";
import { isKept, verdicts } from "../chaos/expected.ts";
import { type Ground, makeGround, prepare, removeGround } from "../chaos/ground.ts";
import { measureRound } from "../chaos/measure.ts";
import { SCENARIOS } from "../chaos/scenarios.ts";
import { describeOnline, kubectl, world } from "./kit/world.ts";

const LOAD = { flows: 20, rate: 4 };
/** For how long clients go on, in milliseconds: less than `npm run chaos` has them. */
const SHORT: readonly (readonly [name: string, lastsMs: number])[] = [
  ["restart-program", 15_000],
  ["kill-gateway", 30_000],
  ["rollout", 10_000],
];

describeOnline("flows, and new connections all the time, of clients whose gateways the agent picks", () => {
  let ground: Ground;

  beforeAll(async () => {
    const cluster = await Cluster.open(world.cluster ?? "");
    await prepare(cluster, kubectl);
    ground = await makeGround(cluster, kubectl, "Agent");
  });
  afterAll(() => removeGround(ground));

  test.each(SHORT)("keep what %s must not take", async (name, lastsMs) => {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) return expect.fail("there is no such scenario");
    const round = await measureRound(ground, { ...scenario, lastsMs }, LOAD);
    // How long it takes on emulated nodes is no measure of the product.
    const found = verdicts(scenario.expected, [round]);
    console.log(name, JSON.stringify(round));
    expect(found.filter((verdict) => !verdict.isTime && !isKept(verdict))).toEqual([]);
  });
});
