import { expect, test } from "vitest";
import { interleave, summarize } from "./samples.ts";

test("the median of an even number of samples lies between the middle two", () => {
  expect(summarize([4, 1, 3, 2]).median).toBe(2.5);
});

test("one outlier moves neither the median nor the spread of many samples much", () => {
  const samples = [...Array.from({ length: 99 }, () => 10), 1000];
  expect(summarize(samples)).toEqual({ median: 10, low: 10, high: 10 });
});

test("samples are taken in turn", async () => {
  const order: string[] = [];
  const taker = (name: string) => async () => order.push(name);
  expect(await interleave(2, { a: taker("a"), b: taker("b") })).toEqual({ a: [1, 3], b: [2, 4] });
  expect(order).toEqual(["a", "b", "a", "b"]);
});
