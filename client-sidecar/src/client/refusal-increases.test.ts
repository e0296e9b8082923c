import { expect, test } from "vitest";
import { RefusalIncreases } from "./refusal-increases.ts";

const counts = (rejected: number, unheard: number) => ({ rejected, unheard });

test("all that a new client's guard has counted is an increase, then what is added to it", () => {
  const increases = new RefusalIncreases([]);
  expect(increases.next("a", counts(3, 1))).toEqual(counts(3, 1));
  expect(increases.next("a", counts(3, 5))).toEqual(counts(0, 4));
  expect(increases.next("b", counts(2, 0))).toEqual(counts(2, 0));
});

test("counts that begin anew count from zero, all of them", () => {
  const increases = new RefusalIncreases([]);
  increases.next("a", counts(100, 3));
  expect(increases.next("a", counts(5, 4))).toEqual(counts(5, 4));
  expect(increases.next("a", counts(6, 0))).toEqual(counts(6, 0));
});

test("what a client had counted before is no increase", () => {
  const increases = new RefusalIncreases(["a"]);
  expect(increases.next("a", counts(100, 3))).toEqual(counts(0, 0));
  expect(increases.next("a", counts(101, 3))).toEqual(counts(1, 0));
});

test("a client that has the name of one that is gone is another one", () => {
  const increases = new RefusalIncreases(["a"]);
  increases.next("a", counts(100, 3));
  increases.keep(new Set(["b"]));
  expect(increases.next("a", counts(102, 4))).toEqual(counts(102, 4));
});
