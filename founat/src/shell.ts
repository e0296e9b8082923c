import { spawn } from "node:child_process";

/** How a process ended. */
export interface ProcessResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

/** A shell that runs one script after another, and ends with the first that fails. */
export interface Shell {
  /**
   * @param script of complete commands
   * @param end a line that the script does not print
   */
  run(script: string, end: string): Promise<ProcessResult>;
  /** Lets it end. */
  close(): void;
}

/**
 * Starts a shell.
 *
 * @param file a program that ends up as a shell that reads its script from standard input
 */
export function openShell(file: string, args: readonly string[]): Shell {
  const child = spawn(file, args, { stdio: "pipe" });
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
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    onOutput?.();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  // A shell that ends early closes the pipe; its exit code tells more than EPIPE does.
  child.stdin.on("error", () => undefined);
  return {
    run: async (script, end) => {
      [stdout, stderr] = ["", ""];
      const done = new Promise<number>((resolve) => {
        onOutput = () => {
          if (stdout.endsWith(`${end}\n`)) resolve(0);
        };
      });
      child.stdin.write(`${script}echo ${end}\n`);
      const exitCode = await Promise.race([done, ended]);
      return { stdout, stderr, exitCode };
    },
    close: () => {
      child.stdin.end();
    },
  };
}
