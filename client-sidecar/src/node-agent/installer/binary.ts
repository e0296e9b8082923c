/** The plugin's executable in the node's directory of CNI binaries. */

import { readFile, stat } from "node:fs/promises";
import { writeFileAtomically } from "../../records/atomic-file.ts";
import { InstallError } from "./error.ts";

const EXECUTABLE_MODE = 0o755;

/** Copies the executable to the node when it is missing there or another one; the runtime never runs half of one. */
export class Binary {
  readonly #source: string;
  readonly #target: string;

  constructor(source: string, target: string) {
    this.#source = source;
    this.#target = target;
  }

  /**
   * @returns whether it was copied
   * @throws InstallError `plugin-missing` when the source is missing
   */
  async install(): Promise<boolean> {
    const executable = await this.#readSource();
    if (await this.#isInstalled(executable)) return false;
    writeFileAtomically(this.#target, executable, EXECUTABLE_MODE);
    return true;
  }

  async #readSource(): Promise<Buffer> {
    try {
      return await readFile(this.#source);
    } catch (cause) {
      const message = `cannot read ${this.#source}: the image is not complete`;
      throw new InstallError("plugin-missing", message, { cause });
    }
  }

  async #isInstalled(executable: Buffer): Promise<boolean> {
    try {
      const { mode } = await stat(this.#target);
      return (mode & 0o777) === EXECUTABLE_MODE && executable.equals(await readFile(this.#target));
    } catch {
      return false;
    }
  }
}
