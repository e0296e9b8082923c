import { type ProcessOptions, type ProcessResult, startProcess } from "./process.ts";

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
export function openShell(file: string, args: readonly string[], options?: ProcessOptions): Shell {
  const { stdin, result } = startProcess(file, args, options);
  return {
    run: (script, end) => {
      stdin?.write(`${script}echo ${end}\n`);
      return result((stdout) => stdout.endsWith(`${end}\n`));
    },
    close: () => {
      stdin?.end();
    },
  };
}
