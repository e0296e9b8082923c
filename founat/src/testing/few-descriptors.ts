import { spawnSync } from "node:child_process";

/**
 * Runs a program in a Node that may open a hundred files.
 *
 * @param program a module
 * @returns what it prints
 */
export function runWithFewDescriptors(program: string): string {
  const node = [process.execPath, "--input-type=module", "--eval", program];
  const options = { encoding: "utf8", timeout: 30_000 } as const;
  return spawnSync("sh", ["-c", 'ulimit -n 100 && exec "$@"', "sh", ...node], options).stdout;
}
