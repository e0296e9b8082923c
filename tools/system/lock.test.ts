import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "./lock.ts";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "egress-nat-lock-"));
});

afterEach(() => rm(folder, { recursive: true }));

test("one after the other gets in", async () => {
  const events: string[] = [];
  const visit = (name: string): Promise<void> =>
    withLock(join(folder, "lock"), async () => {
      events.push(`${name} in`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      events.push(`${name} out`);
    });
  await Promise.all([visit("a"), visit("b")]);
  expect([events.slice(0, 2), events.slice(2)].toSorted()).toEqual([
    ["a in", "a out"],
    ["b in", "b out"],
  ]);
});

test("the lock of a program that is gone is taken over", async () => {
  const noSuchPid = "4194305";
  await writeFile(join(folder, "lock"), noSuchPid);
  expect(await withLock(join(folder, "lock"), async () => "in")).toBe("in");
});

test("a failure opens the lock", async () => {
  await expect(withLock(join(folder, "lock"), () => Promise.reject(new Error("failed")))).rejects.toThrow(
    "failed",
  );
  expect(await readdir(folder)).toEqual([]);
});
