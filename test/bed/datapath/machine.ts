import { inject } from "vitest";
import { type ExecOptions, type ExecResult, exec, run } from "../vm/exec-channel.ts";
import { insideSlot } from "./slots.ts";

/**
 * The machine that all `*.datapath.test.ts` files of a run share. It has the host's programs and files, and `node` is the
 * project's. Files that run at the same time have a /run of their own each, and with it the names of the network
 * namespaces that they make. Tests leave the machine as they found it.
 */
export const machine = {
  /** Runs a bash script, or a program and its arguments, to its end, whatever its exit code. */
  exec: (command: string | readonly string[], options?: ExecOptions): Promise<ExecResult> =>
    exec(inject("datapathMachine"), insideSlot(command), options),
  /** As `exec`; throws when the command fails, else returns what it wrote to stdout. */
  run: (command: string | readonly string[], options?: ExecOptions): Promise<string> =>
    run(inject("datapathMachine"), insideSlot(command), options),
  /** A folder that both sides see at this path; elsewhere the machine may see an old version of a changed file. */
  get share(): string {
    return inject("datapathShare");
  },
} as const;
