/** The plugin's executable in the node's directory of CNI binaries. */

import { readFile, stat } from "node:fs/promises";
import { writeFileAtomically } from "../../records/atomic-file.ts";
import { InstallError } from "./error.ts";

const EXECUTABLE_MODE = 0o755;

/**
 * Copies the executable to the node when it is missing there or another one; the runtime never runs half of one.
 *
 * @returns whether it was copied
 * @throws InstallError `plugin-missing` when the source is missing
 */
export async function installBinary(source: string, target: string): Promise<boolean> {
  const executable = await readFile(source).catch((cause: unknown) => {
    const message = `cannot read ${source}: the image is not complete`;
    throw new InstallError("plugin-missing", message, { cause });
  });
  if (await isInstalled(executable, target)) return false;
  writeFileAtomically(target, executable, EXECUTABLE_MODE);
  return true;
}

async function isInstalled(executable: Buffer, target: string): Promise<boolean> {
  try {
    const { mode } = await stat(target);
    return (mode & 0o777) === EXECUTABLE_MODE && executable.equals(await readFile(target));
  } catch {
    return false;
  }
}
