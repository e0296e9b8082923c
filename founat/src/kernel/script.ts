import { randomBytes } from "node:crypto";
import { FounatError } from "../error.ts";
import type { ProcessResult } from "./process.ts";
import type { Command, Step } from "./step.ts";

/**
 * Runs steps as one shell script.
 *
 * @returns the standard output of each step
 * @throws FounatError `kernel-command-failed`, `kernel-command-killed` with the step that failed
 */
export async function runSteps(
  steps: readonly Step[],
  sysctlRoot: string,
  runScript: (script: string) => Promise<ProcessResult>,
): Promise<readonly string[]> {
  const separator = randomBytes(16).toString("hex");
  const script = shellScript(steps, separator, sysctlRoot);
  const { stdout, stderr, exitCode } = await runScript(script);
  const outputs = stdout.split(`${separator}\n`);
  if (exitCode === 0) return outputs.slice(0, steps.length);
  // The last output is that of the step that failed: each before it has its separator.
  throw failure(steps[outputs.length - 1], stderr, exitCode);
}

function shellScript(steps: readonly Step[], separator: string, sysctlRoot: string): string {
  // Asked to end, it does so when the command has that it waits for, and goes on to no other.
  const lines = ["set -e", "trap 'exit 143' TERM"];
  for (const step of steps) lines.push(...shellLines(step, separator, sysctlRoot), `echo ${separator}`);
  return `${lines.join("\n")}\n`;
}

function shellLines(step: Step, separator: string, root: string): string[] {
  if ("sysctls" in step) {
    // By the shell itself: `sysctl` would be a process.
    return Object.entries(step.sysctls).map(
      ([path, value]) => `printf '%s' ${quote(value)} > ${quote(`${root}/${path}`)}`,
    );
  }
  if ("read" in step) {
    if (step.presenceOnly) return presenceLines(step.read, root);
    // One process for all. The shell's own `read` reads byte by byte, and a sysctl has nothing but its first byte then.
    return [`cd ${quote(root)} && grep -Hs '' ${step.read.map(quote).join(" ")} || true`];
  }
  const lines = commandLines(step, separator);
  return step.ifSysctl === undefined
    ? lines
    : [`if [ -e ${quote(`${root}/${step.ifSysctl}`)} ]; then`, ...lines, "fi"];
}

/** The answer is printed at once: whoever reads it is woken up for each line otherwise. */
function presenceLines(paths: readonly string[], root: string): string[] {
  return [
    "found=",
    `for path in ${paths.map(quote).join(" ")}; do`,
    `if [ -e ${quote(root)}/"$path" ]; then found="$found$path:`,
    '"; fi',
    "done",
    'printf %s "$found"',
  ];
}

function commandLines({ file, args, input, mayFail }: Command, separator: string): string[] {
  const command = [file, ...args].map(quote).join(" ");
  // One that was killed has not answered: 137 is the shell's word for SIGKILL, by which the kernel takes memory back.
  const failure = mayFail ? " 2>/dev/null || [ $? -ne 137 ]" : "";
  if (input === undefined) return [`${command} </dev/null${failure}`];
  return [`${command} <<'${separator}'${failure}`, input.replace(/\n?$/, ""), separator];
}

function quote(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** What a step that failed is told as. */
export function failure(step: Step | undefined, stderr: string, exitCode: number | undefined): FounatError {
  const reason = stderr.trim() || `exit code ${exitCode}`;
  const code = exitCode === undefined ? "kernel-command-killed" : "kernel-command-failed";
  return new FounatError(code, `${step ? describe(step) : "sh"} failed: ${reason}`, {
    retryable: true,
  });
}

function describe(step: Step): string {
  if ("sysctls" in step) return `writing sysctls ${Object.keys(step.sysctls).join(", ")}`;
  if ("read" in step) return `reading sysctls ${step.read.join(", ")}`;
  const words = step.args.map((word) => (word.includes("\n") ? "…" : word));
  return `\`${[step.file, ...words].join(" ")}\``;
}
