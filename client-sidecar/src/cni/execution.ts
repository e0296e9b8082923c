/** One execution as the container runtime starts it: configuration on stdin, a result or an error on stdout. */

import { readSync, writeSync } from "node:fs";
import type { StateLocations } from "../state/node-state.ts";
import { CniError, CniErrorCode, messageOf } from "./error.ts";
import { errorOutcome, runPlugin } from "./plugin.ts";

const STDIN = 0;
const STDOUT = 1;

const CHUNK_BYTES = 65_536;

/** Before a pipe that does not block is tried again. */
const PAUSE_MS = 1;

/**
 * Reads, runs the plugin, writes and ends the process.
 *
 * @param locations of the state shared with the agent; the node's own by default
 */
export async function execute(locations?: StateLocations): Promise<never> {
  const { exitCode, stdout } = await outcome(locations);
  write(stdout);
  process.exit(exitCode);
}

async function outcome(locations: StateLocations | undefined) {
  let stdin: string;
  try {
    stdin = read();
  } catch (error) {
    return errorOutcome(new CniError(CniErrorCode.ioFailure, `stdin cannot be read: ${messageOf(error)}`));
  }
  return runPlugin(process.env, stdin, locations);
}

function read(): string {
  const chunks: Buffer[] = [];
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const length = whenReady(() => readSync(STDIN, chunk));
    if (length === 0) return Buffer.concat(chunks).toString("utf8");
    chunks.push(chunk.subarray(0, length));
  }
}

function write(text: string): void {
  let unsent: Uint8Array = Buffer.from(text);
  while (unsent.length > 0) unsent = unsent.subarray(whenReady(() => writeSync(STDOUT, unsent)));
}

/** Runtimes may hand over pipes that do not block. */
function whenReady<T>(transfer: () => T): T {
  for (;;) {
    try {
      return transfer();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
}
