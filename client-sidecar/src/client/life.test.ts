import fc from "fast-check";
import { expect, it } from "vitest";
import { type Happening, next, type Phase } from "./life.ts";

const HAPPENINGS: readonly Happening[] = ["established", "failed", "deleted", "vanished"];

/** The phases that a client goes through. */
function lived(happenings: readonly Happening[]): readonly Phase[] {
  const phases: Phase[] = ["adding"];
  for (const happening of happenings)
    phases.push(next(phases.at(-1) ?? "adding", happening)?.phase ?? "leaving");
  return phases;
}

it("a client that could not be finished is cleaned at once, because nothing runs in its namespace yet", () => {
  expect(next("adding", "failed")?.tasks).toEqual(["bury", "withdraw", "clean"]);
});

it("a client that is deleted keeps its guard until its interface is gone", () => {
  for (const phase of ["adding", "running"] as const) {
    expect(next(phase, "deleted")?.tasks).toEqual(["bury", "clean-later", "withdraw"]);
  }
});

it("whoever leaves is buried first, once, and withdrawn", () => {
  for (const phase of ["adding", "running"] as const) {
    for (const happening of HAPPENINGS) {
      const step = next(phase, happening);
      if (step?.phase !== "leaving") continue;
      expect(step.tasks[0]).toBe("bury");
      expect(step.tasks).toContain("withdraw");
    }
  }
  for (const happening of HAPPENINGS) expect(next("leaving", happening)?.tasks ?? []).not.toContain("bury");
});

it("nobody comes back from leaving, whatever happens in which order", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...HAPPENINGS)), (happenings) => {
      const phases = lived(happenings);
      const left = phases.indexOf("leaving");
      if (left >= 0) expect(phases.slice(left).every((phase) => phase === "leaving")).toBe(true);
    }),
  );
});
