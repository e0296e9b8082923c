import { expect, test } from "vitest";
import { Course } from "./course.ts";
import type { Ground } from "./ground.ts";
import type { Round } from "./round.ts";

const ground = { selection: "Agent" } as Ground;
const round = { downtimeMs: 0 } as Round;

/** A course of three rounds; the number of one says what becomes of it. */
function courseOf(
  name: string,
  measure: (begun: number, onMeasured: (round: Round) => void) => void,
): Course {
  let begun = 0;
  return new Course(
    ground,
    [name],
    { flows: 20, rate: 1, rounds: 3 },
    async (_ground, _scenario, _load, onMeasured) => {
      begun += 1;
      measure(begun, onMeasured);
    },
  );
}

test("a round whose way back fails is measured all the same, and the scenario is left out from then on", async () => {
  const begun: number[] = [];
  const course = courseOf("upgrade", (number, onMeasured) => {
    begun.push(number);
    onMeasured(round);
    throw new Error("the way back\nis closed");
  });
  await course.run();
  expect(begun).toEqual([1]);
  expect(course.reports).toMatchObject([
    { chaos: "upgrade", rounds: [round], brokenOff: ["Error: the way back"] },
  ]);
});

test("a scenario that is broken off keeps its former rounds", async () => {
  const course = courseOf("drain", (number, onMeasured) => {
    if (number === 2) throw new Error("no flow");
    onMeasured(round);
  });
  await course.run();
  expect(course.reports).toMatchObject([{ rounds: [round], brokenOff: ["Error: no flow"] }]);
});
