/** Where figures come from. */

import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { accelerator, isEmulation } from "../bed/vm/accelerator.ts";
import { vmKit } from "../bed/vm/kit.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The commit that is checked out, and whether anything differs from it. */
export async function commitOfCheckout(): Promise<string> {
  const git = async (...args: string[]) => (await execa("git", args, { cwd: ROOT })).stdout;
  const commit = await git("rev-parse", "--short=12", "HEAD");
  return (await git("status", "--porcelain")) === "" ? commit : `${commit} with changes`;
}

/** Its processors and memory. */
export function describeMachine(): string {
  const [processor, ...others] = cpus();
  return `${others.length + 1} x ${processor?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
}

/** As {@link describeMachine}, and whether it virtualizes nodes or emulates them. */
export async function describeNodes(): Promise<string> {
  const isEmulated = isEmulation(await accelerator(await vmKit()));
  return `${describeMachine()}, ${isEmulated ? "emulated" : "virtualized"} nodes`;
}
