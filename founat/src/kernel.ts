import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { FounatError } from "./error.ts";

/** A command to run: no shell takes part in its arguments. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** Text for standard input. */
  readonly input?: string;
  /** Its failure is an answer too: an empty one. */
  readonly mayFail?: boolean;
}

/** Sysctls to write: path below /proc/sys, with slashes because interface names may hold dots -> value. */
export interface SysctlWrites {
  readonly sysctls: Readonly<Record<string, string>>;
}

/** Sysctls to read; the answer holds a line `path=value` for each that exists. */
export interface SysctlReads {
  readonly read: readonly string[];
}

/** One step towards the kernel. */
export type Step = Command | SysctlWrites | SysctlReads;

/** Every effect that founat has on one network namespace, and every look into it. */
export interface Kernel {
  /**
   * Runs one command.
   *
   * @returns its standard output
   * @throws FounatError `kernel-command-failed` with what it wrote to standard error
   */
  exec(file: string, args: readonly string[], options?: { input?: string }): Promise<string>;
  /**
   * Runs steps one after another in as few processes as possible, and stops at the first that fails.
   *
   * @returns the standard output of each step; empty for sysctls written
   */
  run(steps: readonly Step[]): Promise<readonly string[]>;
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
  return new Map(output.split("\n").filter(Boolean).map(splitAtEquals));
}

export interface KernelOptions {
  /**
   * Where sysctls are read and written. A container's own /proc/sys is read-only; /proc/sys/net of the host
   * mounted elsewhere shows, after setns(2), the values of the namespace entered. Default: /proc/sys.
   */
  readonly sysctlRoot?: string;
}

/** The network namespace of this process. */
export function kernelHere(options: KernelOptions = {}): Kernel {
  return shellKernel(["sh"], options);
}

/**
 * A network namespace given by a file, for instance /run/netns/NAME or /proc/PID/ns/net.
 *
 * @param netnsPath the file; needs CAP_SYS_ADMIN (setns(2))
 */
export function kernelInNetns(netnsPath: string, options: KernelOptions = {}): Kernel {
  return shellKernel(["nsenter", `--net=${netnsPath}`, "--", "sh"], options);
}

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

// All steps go through one `sh -s`: a process that enters the namespace for each of them would cost more than
// the work itself. The script is on standard input, so that its size has no limit.
function shellKernel(shell: readonly [string, ...string[]], options: KernelOptions): Kernel {
  const root = options.sysctlRoot ?? "/proc/sys";

  async function run(steps: readonly Step[]): Promise<readonly string[]> {
    if (steps.length === 0) return [];
    const separator = randomBytes(16).toString("hex");
    const [file, ...args] = shell;
    const output = await spawn(file, [...args, "-s"], script(steps, separator, root), steps);
    return output.split(`${separator}\n`).slice(0, steps.length);
  }

  return {
    run,
    exec: async (file, args, { input } = {}) =>
      (await run([{ file, args, ...(input === undefined ? {} : { input }) }]))[0] ?? "",
    readSysctls: async (paths) => parseSysctls((await run([{ read: paths }]))[0] ?? ""),
  };
}

function splitAtEquals(line: string): [string, string] {
  const at = line.indexOf("=");
  return [line.slice(0, at), line.slice(at + 1)];
}

function script(steps: readonly Step[], separator: string, sysctlRoot: string): string {
  const lines = ["set -e"];
  steps.forEach((step, index) => {
    lines.push(`step=${index}`, `trap 'echo "${separator} $step" >&2' EXIT`);
    lines.push(...shellLines(step, separator, sysctlRoot));
    lines.push(`echo ${separator}`);
  });
  lines.push("trap - EXIT", "");
  return lines.join("\n");
}

// Sysctls are read and written by the shell itself: `cat` or `sysctl` would be a process for each.
function shellLines(step: Step, separator: string, root: string): string[] {
  if ("sysctls" in step) {
    return Object.entries(step.sysctls).map(
      ([path, value]) => `printf '%s' ${quote(value)} > ${quote(`${root}/${path}`)}`,
    );
  }
  if ("read" in step) {
    const paths = step.read.map(quote).join(" ");
    const file = `${quote(root)}/"$p"`;
    return [
      `for p in ${paths}; do if [ -r ${file} ]; then IFS= read -r v < ${file}; printf '%s\\n' "$p=$v"; fi; done`,
    ];
  }
  const command = [step.file, ...step.args]
    .map(quote)
    .join(" ")
    .concat(step.mayFail ? " 2>/dev/null || true" : "");
  if (step.input === undefined) return [`${command} </dev/null`];
  return [`${command} <<'${separator}'`, step.input.replace(/\n?$/, ""), separator];
}

function quote(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function spawn(
  file: string,
  args: readonly string[],
  input: string,
  steps: readonly Step[],
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(file, args, { maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) => {
      if (error) reject(failure(steps, stderr, error));
      else resolve(stdout);
    });
    // A shell that dies early closes the pipe; the exit status above tells more than EPIPE does.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
  });
}

function failure(steps: readonly Step[], stderr: string, cause: unknown): FounatError {
  const marker = /^[0-9a-f]{32} (\d+)$/m.exec(stderr);
  const step = steps[Number(marker?.[1] ?? 0)];
  const what =
    step === undefined
      ? "a command"
      : "sysctls" in step
        ? `writing sysctls ${Object.keys(step.sysctls).join(", ")}`
        : "read" in step
          ? `reading sysctls ${step.read.join(", ")}`
          : `\`${[step.file, ...step.args].join(" ")}\``;
  const said = stderr.replace(marker?.[0] ?? "", "").trim();
  return new FounatError("kernel-command-failed", `${what} failed: ${said || String(cause)}`, {
    retryable: true,
    cause,
  });
}
