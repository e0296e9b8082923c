import { expect, test } from "vitest";
import { Course } from "./course.ts";
import type { Ground } from "./ground.ts";
import type { Round } from "./round.ts";

const LOAD = { flows: 20, rate: 1 };
const ground = { selection: "Agent" } as Ground;
const round = { downtimeMs: 0 } as Round;

test("a round whose way back fails is measured all the same, and the scenario is left out from then on", async () => {
  let begun = 0;
  const course = new Course(
    ground,
    ["upgrade"],
    { ...LOAD, rounds: 2 },
    (_ground, _scenario, _load, onMeasured) => {
      begun += 1;
      onMeasured(round);
      return Promise.reject(new Error("the way back\nis closed"));
    },
  );
  await course.run();
  expect(begun).toBe(1);
  expect(course.reports).toMatchObject([
    { chaos: "upgrade", rounds: [round], brokenOff: ["Error: the way back"] },
  ]);
});

test("a scenario that is broken off keeps its former rounds", async () => {
  let begun = 0;
  const course = new Course(
    ground,
    ["drain"],
    { ...LOAD, rounds: 3 },
    (_ground, _scenario, _load, onMeasured) => {
      begun += 1;
      if (begun === 2) return Promise.reject(new Error("no flow"));
      onMeasured(round);
      return Promise.resolve();
    },
  );
  await course.run();
  expect(course.reports).toMatchObject([{ rounds: [round], brokenOff: ["Error: no flow"] }]);
});
