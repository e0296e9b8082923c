import { execFileSync } from "node:child_process";

/**
 * Runs a program in a Node that may open a hundred files.
 *
 * @param program a module
 * @returns what it prints
 * @throws Error with how it ended and what it complained of, where it failed or took more than a minute
 */
export function runWithFewDescriptors(program: string): string {
  const node = [process.execPath, "--conditions=source", "--input-type=module", "--eval", program];
  const options = { encoding: "utf8", stdio: "pipe", timeout: 60_000 } as const;
  return execFileSync("sh", ["-c", 'ulimit -n 100 && exec "$@"', "sh", ...node], options);
}
