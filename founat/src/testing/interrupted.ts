import { isDeepStrictEqual } from "node:util";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";

/** What an interrupted kernel throws in place of the next command. */
export class Interrupted extends Error {}

/**
 * A kernel whose program is killed after some writing commands. Each line of an `ip -batch` counts as one command; an
 * nft script is one, because the kernel takes it as a whole or not at all.
 *
 * @param commands how many are done before
 */
export function interruptedKernel(kernel: Kernel, commands: number): Kernel {
  const interrupted: Kernel = {
    ...kernel,
    session: (work) => work(interrupted),
    run: async (steps) => {
      const all = steps.flatMap(singleCommands);
      await kernel.run(inOneBatch(all.slice(0, commands)));
      if (all.length > commands) throw new Interrupted();
      return [];
    },
  };
  return interrupted;
}

/** A kernel that may be read, and counts what is written. */
export function countingKernel(kernel: Kernel): Kernel & { readonly writes: () => number } {
  let writes = 0;
  const counting: Kernel = {
    ...kernel,
    session: (work) => work(counting),
    run: (steps) => {
      writes += steps.flatMap(singleCommands).length;
      return kernel.run(steps);
    },
  };
  return { ...counting, writes: () => writes };
}

function singleCommands(step: Step): Step[] {
  if (!("file" in step) || step.file !== "ip" || step.input === undefined) return [step];
  return step.input
    .split("\n")
    .filter(Boolean)
    .map((line) => ({ ...step, input: `${line}\n` }));
}

/** Neighbouring lines of an `ip -batch` again as one: what is done is the same, with fewer processes. */
function inOneBatch(steps: readonly Step[]): Step[] {
  const batches: Step[] = [];
  for (const step of steps) {
    const last = batches.at(-1);
    const isNext =
      last !== undefined &&
      "file" in last &&
      "file" in step &&
      step.file === "ip" &&
      isDeepStrictEqual({ ...last, input: "" }, { ...step, input: "" });
    if (isNext) batches[batches.length - 1] = { ...last, input: `${last.input}${step.input}` };
    else batches.push(step);
  }
  return batches;
}
