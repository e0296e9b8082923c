import { expect, test } from "vitest";
import { heapInUse } from "../testing/heap.ts";
import { abortable } from "./abortable.ts";

const never = new Promise<never>(() => undefined);

test("what is waited for comes to all who wait, as long as they have not given up", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const [patient, impatient] = [new AbortController(), new AbortController()];
  const waits = [patient, impatient, patient].map(({ signal }) => abortable(promise, signal));
  impatient.abort("in a hurry");
  resolve("kale");
  expect(await Promise.allSettled(waits)).toMatchObject([
    { value: "kale" },
    { reason: "in a hurry" },
    { value: "kale" },
  ]);
  expect(await abortable(promise, patient.signal)).toBe("kale");
  await expect(abortable(promise, impatient.signal)).rejects.toBe("in a hurry");
});

test("what fails fails for all who wait, and for nobody who has given up", async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  const impatient = new AbortController();
  const waits = [abortable(promise, impatient.signal), abortable(promise, new AbortController().signal)];
  impatient.abort("in a hurry");
  reject("frost");
  expect(await Promise.allSettled(waits)).toMatchObject([{ reason: "in a hurry" }, { reason: "frost" }]);
  await expect(abortable(promise, new AbortController().signal)).rejects.toBe("frost");
});

test("whoever has given up leaves nothing on what it waited for", async () => {
  const giveUp = async () => {
    const impatient = new AbortController();
    const waiting = abortable(never, impatient.signal);
    impatient.abort();
    await waiting.catch(() => undefined);
  };
  await giveUp();
  const before = heapInUse();
  for (let count = 0; count < 2_000; count += 1) await giveUp();
  expect(heapInUse() - before).toBeLessThan(500_000);
});
