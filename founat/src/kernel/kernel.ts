import { type ProcessOptions, type ProcessResult, runProcess } from "./process.ts";
import { failure, runSteps } from "./script.ts";
import type { Command, Step } from "./step.ts";

/** Every effect that founat has on one network namespace, and every look into it. */
export interface Kernel {
  /**
   * Runs one command.
   *
   * @returns its standard output
   * @throws FounatError `kernel-command-failed` with what it wrote to standard error; `kernel-command-killed` where it
   *   hangs, as all below
   */
  exec(file: string, args: readonly string[], options?: { input?: string }): Promise<string>;
  /**
   * Runs steps one after another in as few processes as possible, and stops at the first that fails.
   *
   * @returns the standard output of each step; empty for sysctls written
   */
  run(steps: readonly Step[]): Promise<readonly string[]>;
  /**
   * Runs steps that change nothing, in any order or at the same time.
   *
   * @returns the standard output of each step
   */
  read(steps: readonly Step[]): Promise<readonly string[]>;
  /**
   * Runs steps as {@link run} does, in an empty network namespace that ends with them; needs CAP_SYS_ADMIN.
   */
  runAside(steps: readonly Step[]): Promise<readonly string[]>;
  /**
   * Reads sysctls.
   *
   * @param paths below /proc/sys, with slashes
   * @returns the values of those that exist
   */
  readSysctls(paths: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** The answer to {@link SysctlReads}, as a map. */
export function parseSysctls(output: string): ReadonlyMap<string, string> {
  return new Map(
    Array.from(output.matchAll(/^([^:\n]*):(.*)$/gm), ([, path = "", value = ""]) => [path, value]),
  );
}

export interface KernelOptions extends ProcessOptions {
  /**
   * Where sysctls are read and written. A container's own /proc/sys is read-only; /proc/sys/net of the host
   * mounted elsewhere shows, after setns(2), the values of the namespace entered. Default: /proc/sys.
   */
  readonly sysctlRoot?: string;
}

/** The network namespace of this process. */
export function kernelHere(options: KernelOptions = {}): Kernel {
  const kernel = kernelThrough((...command) => runProcess(...command, options), options);
  // A gateway that starts waits for this: no namespace to enter, so nothing that one shell would save.
  const read = (steps: readonly Step[]) =>
    Promise.all(steps.map(async (step) => (await kernel.run([step]))[0] ?? ""));
  return { ...kernel, read };
}

/**
 * A kernel that is reached through processes. The steps of a run go through one shell: a process that enters the
 * namespace for each of them would cost more than the work itself. A single command needs no shell, and its input,
 * which may be that of ten thousand clients, does not pass through one.
 *
 * @param execute runs a program in the network namespace, with an input of any size
 */
export function kernelThrough(
  execute: (file: string, args: readonly string[], input: string) => Promise<ProcessResult>,
  { sysctlRoot = SYSCTL_ROOT }: KernelOptions = {},
): Kernel {
  const runAlone = async (command: Command): Promise<string> => {
    const { stdout, stderr, exitCode } = await execute(command.file, command.args, command.input ?? "");
    if (exitCode === undefined || (exitCode !== 0 && !command.mayFail))
      throw failure(command, stderr, exitCode);
    return stdout;
  };
  const runScript = (shell: readonly string[], steps: readonly Step[]): Promise<readonly string[]> => {
    const [file = "", ...args] = shell;
    return runSteps(steps, sysctlRoot, (script) => execute(file, args, script));
  };
  const run = async (steps: readonly Step[]): Promise<readonly string[]> => {
    const [first, ...others] = steps;
    if (first === undefined) return [];
    const isAlone = others.length === 0 && "file" in first && first.ifSysctl === undefined;
    return isAlone ? [await runAlone(first)] : runScript(SHELL, steps);
  };
  return {
    run,
    read: run,
    runAside: (steps) => runScript(["unshare", "--net", "--", ...SHELL], steps),
    exec: async (file, args, { input } = {}) =>
      (await run([{ file, args, ...(input !== undefined && { input }) }]))[0] ?? "",
    readSysctls: async (paths) => parseSysctls((await run([{ read: paths }]))[0] ?? ""),
  };
}

const SHELL = ["sh", "-s"];
const SYSCTL_ROOT = "/proc/sys";
