import { type ChildProcess, spawn } from "node:child_process";

/** How a process ended. */
export interface ProcessResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Undefined: it did not come to an end of its own, which would be an answer, and `stderr` says why. */
  readonly exitCode: number | undefined;
}

export interface ProcessOptions {
  /** How long it may print nothing, in milliseconds. Default: 20,000. */
  readonly silenceMs?: number;
}

/** Commands take milliseconds. After one that hangs an ADD, which has a minute, can take back what it has begun, and say so. */
export const SILENCE_MS = 20_000;

const MAX_OUTPUT_CHARACTERS = 256 * 1024 * 1024;

/** Between SIGTERM and SIGKILL. */
const GRACE_MS = 1_000;

/**
 * Runs a program to its end.
 *
 * @returns also where it could not be started, or has exceeded a limit: it is told to end then, with all that it has
 *   started, and killed where it does not
 */
export function runProcess(
  file: string,
  args: readonly string[],
  input: string,
  { silenceMs = SILENCE_MS }: ProcessOptions = {},
): Promise<ProcessResult> {
  // In a process group of its own: a shell that is killed alone leaves behind the command that it waits for.
  const child: ChildProcess = spawn(file, args, { stdio: "pipe", detached: true });
  let [stdout, stderr] = ["", ""];
  return new Promise((resolve) => {
    const finish = (exitCode: number | undefined): void => {
      clearTimeout(silence);
      resolve({ stdout, stderr, exitCode });
    };
    const kill = (reason: string): void => {
      if (child.pid !== undefined) endGroup(child.pid);
      for (const stream of [child.stdout, child.stderr]) stream?.destroy();
      stderr = killed(reason);
      // A process that is stuck in the kernel ends when it comes out of it: it is not waited for.
      finish(undefined);
    };
    const silence = setTimeout(() => kill(silentFor(silenceMs)), silenceMs);
    const onOutput = (): void => {
      silence.refresh();
      if (stdout.length + stderr.length > MAX_OUTPUT_CHARACTERS)
        kill(`it printed more than ${MAX_OUTPUT_CHARACTERS} characters`);
    };
    // Where the program could not be started, only the error says why. One that is not there would never say more.
    child.once("error", (error) => {
      stderr += String(error);
      finish((error as NodeJS.ErrnoException).code === "ENOENT" ? 1 : undefined);
    });
    child.once("close", (code, signal) => {
      if (code === null) stderr = `it was ended by ${signal}`;
      finish(code ?? undefined);
    });
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      onOutput();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
      onOutput();
    });
    // A program that ends early closes the pipe; its exit code tells more than EPIPE does.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
  });
}

/** Why a process was killed that printed nothing. */
export function silentFor(milliseconds: number): string {
  return `it printed nothing for ${milliseconds / 1000} s`;
}

/** What one is told as that was killed. */
export function killed(reason: string): string {
  return `${reason}, and was killed`;
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
