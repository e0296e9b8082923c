import { expect, test } from "vitest";
import { Backoff } from "./backoff.ts";

const delays = (random: () => number) => {
  const backoff = new Backoff({ baseMs: 100, maxMs: 1_000 }, random);
  return Array.from({ length: 6 }, () => backoff.next());
};

test("delays double up to the limit", () => {
  expect(delays(() => 1)).toEqual([100, 200, 400, 800, 1000, 1000]);
});

test("delays are drawn from the upper half of their range", () => {
  expect(delays(() => 0)).toEqual([50, 100, 200, 400, 500, 500]);
});

test("what the other side asked for is waited in any case", () => {
  expect(new Backoff({ baseMs: 100, maxMs: 1_000 }, () => 0).next(5_000)).toBe(5_050);
});

test("after ten thousand failures the delay is still the limit", () => {
  const backoff = new Backoff({ baseMs: 100, maxMs: 1_000 }, () => 1);
  for (let i = 0; i < 10_000; i += 1) backoff.next();
  expect(backoff.next()).toBe(1_000);
});

test("a success starts over", () => {
  const backoff = new Backoff({ baseMs: 100, maxMs: 1_000 }, () => 1);
  backoff.next();
  backoff.next();
  backoff.reset();
  expect(backoff.next()).toBe(100);
});
