import { isDeepStrictEqual } from "node:util";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";

/** What an interrupted kernel throws in place of the next command. */
export class Interrupted extends Error {}

/**
 * A kernel whose program is killed after some writing commands. What the kernel takes as a whole or not at all is one: each
 * line of an `ip -batch`, of tc and of ipset, each table of iptables, an nft script.
 *
 * @param commands how many are done before
 */
export function interruptedKernel(kernel: Kernel, commands: number): Kernel {
  return {
    ...kernel,
    run: async (steps) => {
      const all = steps.flatMap(singleCommands);
      await kernel.run(inOneBatch(all.slice(0, commands)));
      if (all.length > commands) throw new Interrupted();
      return [];
    },
  };
}

/** A kernel that may be read, and counts the steps that write. */
export function countingKernel(kernel: Kernel): Kernel & { readonly writes: () => number } {
  let writes = 0;
  return {
    ...kernel,
    run: (steps) => {
      writes += steps.length;
      return kernel.run(steps);
    },
    writes: () => writes,
  };
}

/** Of programs that commit what they read by parts: where a part ends. */
const PARTS: readonly (readonly [file: RegExp, part: RegExp])[] = [
  [/^(ip|tc|ipset)$/, /.+\n/g],
  [/^ip6?tables-\w+-restore$/, /.+?\nCOMMIT\n/gs],
];

function singleCommands(step: Step): Step[] {
  const part = "file" in step ? PARTS.find(([file]) => file.test(step.file))?.[1] : undefined;
  if (part === undefined || !("file" in step) || step.input === undefined) return [step];
  return (step.input.match(part) ?? []).map((input) => ({ ...step, input }));
}

/** Neighbouring parts again as one: what is done is the same, with fewer processes. */
function inOneBatch(steps: readonly Step[]): Step[] {
  const batches: Step[] = [];
  for (const step of steps) {
    const last = batches.at(-1);
    const isNext =
      last !== undefined &&
      "file" in last &&
      "file" in step &&
      PARTS.some(([file]) => file.test(step.file)) &&
      isDeepStrictEqual({ ...last, input: "" }, { ...step, input: "" });
    if (isNext) batches[batches.length - 1] = { ...last, input: `${last.input}${step.input}` };
    else batches.push(step);
  }
  return batches;
}
