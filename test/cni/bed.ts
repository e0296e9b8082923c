import { afterAll, beforeAll } from "vitest";
import { type CniPrograms, cniPrograms } from "./programs.ts";
import { Sandbox } from "./sandbox.ts";

/** The first run builds what all of them execute. */
const SETUP_TIMEOUT_MS = 600_000;

export interface CniBed {
  readonly programs: CniPrograms;
  readonly sandbox: Sandbox;
}

/**
 * The programs and a sandbox for the tests of the calling file.
 *
 * @returns to be asked for them by the tests, and not before
 */
export function cniBed(): () => CniBed {
  let bed: CniBed | undefined;
  beforeAll(async () => {
    bed = { programs: await cniPrograms(), sandbox: await Sandbox.start() };
  }, SETUP_TIMEOUT_MS);
  afterAll(() => bed?.sandbox.end());
  return () => {
    if (bed === undefined) throw new Error("the sandbox is made before the first test, and not earlier");
    return bed;
  };
}
