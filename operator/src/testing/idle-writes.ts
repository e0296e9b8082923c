import { expect } from "vitest";
import type { Playground } from "./cluster.ts";
import type { RunningOperator } from "./running-operator.ts";

const eventually = { timeout: 20_000, interval: 20 };

/**
 * What operators write about all that is there while one of them does its work for a new Egress, whose turn comes last.
 *
 * @returns "PATCH /apis/..."; nothing, where everything is as it should be
 */
export async function idleWrites(
  play: Playground,
  ...operators: readonly RunningOperator[]
): Promise<string[]> {
  const before = operators.map(({ writes }) => writes.length);
  const name = `last-${before.join("-")}`;
  await play.createEgress(name);
  await expect.poll(() => play.conditions(name), eventually).toMatchObject({ Degraded: "False AsExpected" });
  return operators
    .flatMap(({ writes }, index) => writes.slice(before[index]))
    .filter((write) => !write.includes(`/${name}`));
}
