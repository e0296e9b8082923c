import { inject } from "vitest";
import { type ExecOptions, type ExecResult, exec, run } from "../vm/exec-channel.ts";

/**
 * The machine that all `*.datapath.test.ts` files share. It has the host's programs and files, and `node` is the
 * project's. Tests leave it as they found it: they work in network namespaces that they make and remove.
 */
export const machine = {
  /** Runs a bash script, or a program and its arguments, to its end, whatever its exit code. */
  exec: (command: string | readonly string[], options?: ExecOptions): Promise<ExecResult> =>
    exec(inject("datapathMachine"), command, options),
  /** As `exec`; throws when the command fails, else returns what it wrote to stdout. */
  run: (command: string | readonly string[], options?: ExecOptions): Promise<string> =>
    run(inject("datapathMachine"), command, options),
  /** A folder that both sides see at this path; elsewhere the machine may see an old version of a changed file. */
  get share(): string {
    return inject("datapathShare");
  },
} as const;
