import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";

/** How a process ended. */
export interface ProcessResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Undefined: it exceeded a limit, which `stderr` names, and was killed. */
  readonly exitCode: number | undefined;
}

export interface ProcessOptions {
  /** How long it may print nothing while it is waited for, in milliseconds. Default: 20,000. */
  readonly silenceMs?: number;
}

/** A process that does not run for ever. */
export interface LimitedProcess {
  /** Missing where there was no file descriptor left for it. */
  readonly stdin: Writable | null;
  /**
   * Waits until it has ended, or what it has printed since this call is the end of an answer.
   *
   * @returns also when it has exceeded a limit: it is told to end then, with all that it has started, and killed where
   *   it does not
   */
  result(isAnswer?: (stdout: string) => boolean): Promise<ProcessResult>;
}

/** Commands take milliseconds. After one that hangs an ADD, which has a minute, can take back what it has begun, and say so. */
const SILENCE_MS = 20_000;

const MAX_OUTPUT_CHARACTERS = 256 * 1024 * 1024;

/** Between SIGTERM and SIGKILL. */
const GRACE_MS = 1_000;

/** Starts a program; where that is not possible, its result says why. */
export function startProcess(
  file: string,
  args: readonly string[],
  { silenceMs = SILENCE_MS }: ProcessOptions = {},
): LimitedProcess {
  // In a process group of its own: a shell that is killed alone leaves behind the command that it waits for.
  const child: ChildProcess = spawn(file, args, { stdio: "pipe", detached: true });
  let [stdout, stderr] = ["", ""];
  let onOutput: (() => void) | undefined;
  const ended = new Promise<number>((resolve) => {
    // Where the program could not be started, only the error says why.
    child.once("error", (error) => {
      stderr += String(error);
      resolve(1);
    });
    child.once("close", (code) => resolve(code ?? 1));
  });
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    onOutput?.();
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    onOutput?.();
  });
  // A program that ends early closes the pipe; its exit code tells more than EPIPE does.
  child.stdin?.on("error", () => undefined);
  return {
    stdin: child.stdin,
    result: (isAnswer = () => false) =>
      new Promise((resolve) => {
        [stdout, stderr] = ["", ""];
        const finish = (exitCode: number | undefined): void => {
          clearTimeout(silence);
          onOutput = undefined;
          resolve({ stdout, stderr, exitCode });
        };
        const kill = (reason: string): void => {
          if (child.pid !== undefined) endGroup(child.pid);
          for (const stream of [child.stdout, child.stderr]) stream?.destroy();
          stderr = `${reason}, and was killed`;
          // A process that is stuck in the kernel ends when it comes out of it: it is not waited for.
          finish(undefined);
        };
        const silence = setTimeout(() => kill(`it printed nothing for ${silenceMs / 1000} s`), silenceMs);
        onOutput = () => {
          silence.refresh();
          if (stdout.length + stderr.length > MAX_OUTPUT_CHARACTERS)
            kill(`it printed more than ${MAX_OUTPUT_CHARACTERS} characters`);
          else if (isAnswer(stdout)) finish(0);
        };
        void ended.then(finish);
      }),
  };
}

/** Runs a program to its end. */
export function runProcess(
  file: string,
  args: readonly string[],
  input: string,
  options: ProcessOptions,
): Promise<ProcessResult> {
  const { stdin, result } = startProcess(file, args, options);
  stdin?.end(input);
  return result();
}

/**
 * A shell that is asked can reap the command that it waits for. After SIGKILL that is left to PID 1, which in a container
 * is a program that reaps none but its own children.
 */
function endGroup(pid: number, signal: NodeJS.Signals = "SIGTERM"): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // It has ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
  if (signal === "SIGTERM") setTimeout(endGroup, GRACE_MS, pid, "SIGKILL");
}
