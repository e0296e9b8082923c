import { expect, test } from "vitest";
import { remembering, shortDigest } from "./digest.ts";

test("a short digest is the beginning of SHA-256, however often it is asked for", () => {
  for (const _ of [1, 2]) expect(shortDigest("10.0.0.1")).toBe("f5047344");
});

test("who remembers asks once, and forgets before there is too much of it", () => {
  let asked = 0;
  const answer = (text: string) => {
    asked += 1;
    return `${text.length}`;
  };
  const length = remembering(answer, { keyOf: (text) => text.toLowerCase(), most: 100 });
  expect([length("abc"), length("ABC"), asked]).toEqual(["3", "3", 1]);
  for (let number = 0; number < 100; number += 1) length(`${number}`);
  asked = 0;
  length("abc");
  expect(asked).toBe(1);
});
