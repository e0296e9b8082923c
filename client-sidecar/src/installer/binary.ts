/** The plugin's executable in the node's directory of CNI binaries. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { chmod, copyFile, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncDirectory } from "../state/atomic-file.ts";
import { InstallError } from "./error.ts";

/** Copies the executable to the node when it is missing there or another one; the runtime never runs half of one. */
export class Binary {
  readonly #source: string;
  readonly #target: string;
  #verified: string | undefined;
  #digest: string | undefined;

  constructor(source: string, target: string) {
    this.#source = source;
    this.#target = target;
  }

  /**
   * @returns whether it was copied
   * @throws InstallError `plugin-missing` when the source is missing
   */
  async install(): Promise<boolean> {
    // Reading 100 MB each time the directory changes is too much: who touches the file changes its inode or time.
    const seen = await fingerprint(this.#target);
    if (seen !== undefined && seen === this.#verified) return false;
    this.#digest ??= await this.#digestOfSource();
    const same = seen !== undefined && (await digest(this.#target)) === this.#digest;
    if (!same) await this.#copy();
    this.#verified = await fingerprint(this.#target);
    return !same;
  }

  async #digestOfSource(): Promise<string> {
    try {
      return await digest(this.#source);
    } catch (cause) {
      const message = `cannot read ${this.#source}: the image is not complete`;
      throw new InstallError("plugin-missing", message, { cause });
    }
  }

  async #copy(): Promise<void> {
    const directory = dirname(this.#target);
    const temporary = join(directory, `.${basename(this.#target)}.${process.pid}`);
    try {
      await copyFile(this.#source, temporary);
      await chmod(temporary, 0o755);
      await using file = await open(temporary, "r+");
      await file.sync();
      await rename(temporary, this.#target);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    syncDirectory(directory);
  }
}

async function fingerprint(path: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeMs, mode } = await stat(path);
    return [ino, size, mtimeMs, mode].join();
  } catch {
    return undefined;
  }
}

async function digest(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk);
  return hash.digest("hex");
}
