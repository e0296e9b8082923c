import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { contentHash, exists } from "../system/cache.ts";

export interface Step {
  /** Where the hash of the inputs is remembered. */
  readonly stamp: string;
  /** Folders and files that the outputs are made of. Tests and what is built are left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly run: () => Promise<void>;
}

/**
 * Runs a step of a build unless its inputs are what they were when it last ended well.
 *
 * @returns whether it ran
 */
export async function bringUpToDate(step: Step): Promise<boolean> {
  const files = (await Promise.all(step.inputs.map(sources))).flat().sort();
  const names = files.map((file) => relative(dirname(step.stamp), file));
  const hash = await contentHash({ texts: names, files });
  const present = await Promise.all(step.outputs.map(exists));
  if (present.every(Boolean) && (await readFile(step.stamp, "utf8").catch(() => "")) === hash) return false;
  await step.run();
  await mkdir(dirname(step.stamp), { recursive: true });
  await writeFile(step.stamp, hash);
  return true;
}

async function sources(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true, recursive: true }).catch((error) => {
    if (error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (entries === undefined) return [path];
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
    .map((entry) => join(entry.parentPath, entry.name));
}
