import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { runPlan } from "./run-plan.ts";
import type { Stage } from "./stage.ts";
import type { Tally } from "./tally.ts";

const PASSED: Tally = { passed: 1, failures: [], skipped: 0 };

beforeEach(() => {
  vi.spyOn(console, "log").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
});
afterEach(() => vi.restoreAllMocks());

test("a step begins when the one before has ended, but for stages that outlast their step", async () => {
  const order: string[] = [];
  const ends = Promise.withResolvers<void>();
  const long = stage("long", async () => {
    await ends.promise;
    order.push("long");
  });
  const short = stage("short", async () => void order.push("short"));
  const next = stage("next", async () => {
    order.push("next");
    ends.resolve();
  });
  const results = await run([{ ...long, outlastsStep: true }, short], [next]);
  expect(order).toEqual(["short", "next", "long"]);
  expect(results.map(({ name }) => name)).toEqual(["long", "short", "next"]);
});

test("after a stage that broke off the others run all the same", async () => {
  const broken = stage("broken", () => Promise.reject(new Error("no disk")));
  const results = await run([broken], [stage("next")]);
  expect(results.map(({ tally }) => tally)).toEqual([
    { ...PASSED, passed: 0, failures: ["it broke off: Error: no disk"] },
    PASSED,
  ]);
});

test("no step begins once the user has interrupted the run", async () => {
  const abort = new AbortController();
  const interrupted = stage("interrupted", async () => abort.abort());
  const results = await runPlan([[interrupted], [stage("next")]], context(abort.signal));
  expect(results.map(({ name }) => name)).toEqual(["interrupted"]);
});

function run(...plan: readonly (readonly Stage[])[]) {
  return runPlan(plan, context(new AbortController().signal));
}

function context(signal: AbortSignal) {
  return { root: "/", signal, filters: [], fix: false };
}

function stage(name: string, act = async () => {}): Stage {
  return {
    name,
    summary: name,
    run: async () => {
      await act();
      return PASSED;
    },
  };
}
