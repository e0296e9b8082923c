import { readFile, rm, writeFile } from "node:fs/promises";
import { waitUntil } from "./wait-until.ts";

// Longer than any build takes on two busy cores with empty caches.
const TIMEOUT_MS = 30 * 60_000;

/**
 * Does something while no other program on this machine, nor another call in this one, does it. A lock whose holder
 * is gone is nobody's.
 *
 * @param file the lock: there while it is held, with the holder's pid
 */
export async function withLock<T>(file: string, task: () => Promise<T>): Promise<T> {
  await waitUntil(() => tryLock(file), {
    what: `the program that holds ${file}`,
    timeoutMs: TIMEOUT_MS,
    intervalMs: 200,
  });
  try {
    return await task();
  } finally {
    await rm(file, { force: true });
  }
}

async function tryLock(file: string): Promise<boolean> {
  try {
    await writeFile(file, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const holder = await readFile(file, "utf8").catch(() => "");
  // Empty: it has been made, and its pid is about to be written.
  if (holder !== "" && !isAlive(Number(holder))) await rm(file, { force: true });
  return false;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
