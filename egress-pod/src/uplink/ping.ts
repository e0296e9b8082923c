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
  while (!signal.aborted) {
    await pinging(address, onRequest, signal);
    if (!signal.aborted) onRequest(false);
    await pause(EVERY_MS, signal);
  }
};

async function pinging(
  address: string,
  onRequest: (answered: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  const args = ["-n", "-O", "-i", `${EVERY_MS / 1000}`, address];
  const judged = new Judged();
  try {
    const child = spawn("ping", args, { stdio: ["ignore", "pipe", "ignore"] });
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    child.once("error", () => end());
    child.once("close", () => end());
    createInterface({ input: child.stdout }).on("line", (line) => {
      const request = requestOf(line);
      if (request !== undefined && judged.isNext(request.number)) onRequest(request.answered);
    });
    // The signal option of spawn() leaves a listener, and with it the child, on the signal where the command is not there.
    const kill = () => child.kill();
    signal.addEventListener("abort", kill);
    await ended;
    signal.removeEventListener("abort", kill);
  } catch {
    // A container without the capability may not even start it.
  }
}

/** An answer that comes after its request was given up is none. */
class Judged {
  #last: number | undefined;

  isNext(number: number): boolean {
    // They begin anew after 65,535.
    const ahead = this.#last === undefined ? 1 : (number - this.#last) & 0xffff;
    if (ahead === 0 || ahead > 0x7fff) return false;
    this.#last = number;
    return true;
  }
}

/** What a line of `ping -O` says of which request; undefined of any other line. */
export function requestOf(line: string): { number: number; answered: boolean } | undefined {
  const [, answered, missed] =
    / bytes from .* icmp_seq=(\d+) .*time[=<]|^no answer yet for icmp_seq=(\d+)/.exec(line) ?? [];
  const number = answered ?? missed;
  return number === undefined ? undefined : { number: Number(number), answered: answered !== undefined };
}
