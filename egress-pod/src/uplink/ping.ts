/** Asks an address all the time. */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { pause } from "@egress-nat/kube";

/** Between two requests. */
const EVERY_MS = 500;

/** Calls back for each request: whether it was answered before the next one. Runs until the signal is aborted. */
export type Ping = (
  address: string,
  onRequest: (answered: boolean) => void,
  signal: AbortSignal,
) => Promise<void>;

/** By ping(8), in a process for as long as it runs: an address that it has no route to ends it, and is asked anew. */
export const ping: Ping = async (address, onRequest, signal) => {
  do {
    await pinging(address, onRequest, signal);
    if (!signal.aborted) onRequest(false);
  } while (await pause(EVERY_MS, signal));
};

async function pinging(
  address: string,
  onRequest: (answered: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  const child = spawn("ping", ["-n", "-O", "-i", `${EVERY_MS / 1000}`, address], {
    stdio: ["ignore", "pipe", "ignore"],
    signal,
  });
  const ended = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("close", () => resolve());
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const answered = answerOf(line);
    if (answered !== undefined) onRequest(answered);
  });
  await ended;
}

/** What a line of `ping -O` says of a request; undefined of any other line. */
export function answerOf(line: string): boolean | undefined {
  if (/ bytes from .* time[=<]/.test(line)) return true;
  return /^no answer yet for /.test(line) ? false : undefined;
}
