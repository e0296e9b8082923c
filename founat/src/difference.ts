import type { Step } from "./kernel/step.ts";

/** One thing that the kernel lacks or has otherwise. */
export interface Difference {
  /** Its kind, as `ip` and `nft` name it: table, chain, set, map, flowtable, fou, link, address, rule, route; sysctl. */
  readonly object: string;
  /** In words, for people. */
  readonly text: string;
}

export interface Changes {
  /** Empty when the kernel is as it should be. */
  readonly differences: readonly Difference[];
  /** What makes it so. */
  readonly steps: readonly Step[];
}

/**
 * What is still to be done.
 *
 * @param command that takes the lines
 */
export function notDone(command: "ip" | "ip -6", lines: readonly string[]): Difference[] {
  return lines.map((line) => ({
    object: line.split(" ", 1)[0] ?? "",
    text: `not done: ${command} ${line}`,
  }));
}
