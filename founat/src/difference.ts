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

/** All of them, one after the other. */
export function inOrder(...changes: readonly Changes[]): Changes {
  return {
    differences: changes.flatMap(({ differences }) => differences),
    steps: changes.flatMap(({ steps }) => steps),
  };
}
