import { beforeEach, expect, test } from "vitest";
import { Turns } from "./turns.ts";

let turns: Turns;
let done: string[];

/** A look that ends only when it is told to, or finished. */
function look(key: string) {
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const ended = turns.giveWay(key, async (signal) => {
    const { promise: told, reject } = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => reject(signal.reason));
    signal.throwIfAborted();
    await Promise.race([finished, told]);
    done.push(`look at ${key}`);
    return "looked";
  });
  return { ended, finish };
}

const hurry = (key: string) => turns.hurry(key, async () => void done.push(`hurry to ${key}`));
const turnOfEventLoop = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  turns = new Turns();
  done = [];
});

test("what is hurried overtakes what gives way, under way or not, and nothing else", async () => {
  const [underWay, other] = [look("a"), look("b")];
  await turnOfEventLoop();
  await hurry("a");
  expect(await underWay.ended).toBeUndefined();
  const first = turns.take("a", async () => void done.push("take a"));
  const waiting = look("a");
  await Promise.all([first, hurry("a")]);
  expect(await waiting.ended).toBeUndefined();
  other.finish();
  expect(await other.ended).toBe("looked");
  expect(done).toEqual(["hurry to a", "take a", "hurry to a", "look at b"]);
});

test("what was overtaken three times in a row does not give way again until it is done", async () => {
  for (let time = 0; time < 3; time += 1) {
    const { ended } = look("a");
    await hurry("a");
    expect(await ended).toBeUndefined();
  }
  const { ended, finish } = look("a");
  const hurried = hurry("a");
  await turnOfEventLoop();
  finish();
  expect(await ended).toBe("looked");
  await hurried;
  expect(done.slice(3)).toEqual(["look at a", "hurry to a"]);
  const next = look("a");
  await hurry("a");
  expect(await next.ended).toBeUndefined();
});

test("what fails by itself was not overtaken", async () => {
  const failing = turns.giveWay("a", () => Promise.reject(new Error("no such interface")));
  await expect(failing).rejects.toThrow("no such interface");
});
