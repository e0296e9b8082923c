/** The plugin's executable in the node's directory of CNI binaries. */

import { chmod, copyFile, type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncDirectory } from "../state/atomic-file.ts";
import { InstallError } from "./error.ts";

const CHUNK_BYTES = 1 << 20;
const EXECUTABLE_MODE = 0o755;

/** Copies the executable to the node when it is missing there or another one; the runtime never runs half of one. */
export class Binary {
  readonly #source: string;
  readonly #target: string;
  #verified: string | undefined;

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
    await using source = await this.#openSource();
    const same = seen !== undefined && (await this.#isSame(source));
    if (!same) await this.#copy();
    this.#verified = await fingerprint(this.#target);
    return !same;
  }

  async #isSame(source: FileHandle): Promise<boolean> {
    await using target = await open(this.#target);
    if (((await target.stat()).mode & 0o777) !== EXECUTABLE_MODE) return false;
    const [mine, theirs] = [Buffer.alloc(CHUNK_BYTES), Buffer.alloc(CHUNK_BYTES)];
    for (;;) {
      const [a, b] = await Promise.all([source.read(mine), target.read(theirs)]);
      if (a.bytesRead !== b.bytesRead || mine.compare(theirs, 0, b.bytesRead, 0, a.bytesRead) !== 0)
        return false;
      if (a.bytesRead === 0) return true;
    }
  }

  async #openSource(): Promise<FileHandle> {
    try {
      return await open(this.#source);
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
      await chmod(temporary, EXECUTABLE_MODE);
      await sync(temporary);
      await rename(temporary, this.#target);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    syncDirectory(directory);
  }
}

/** The file is closed again before it gets its name: one that is open for writing cannot be executed. */
async function sync(path: string): Promise<void> {
  await using file = await open(path);
  await file.sync();
}

async function fingerprint(path: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeMs, mode } = await stat(path);
    return [ino, size, mtimeMs, mode].join();
  } catch {
    return undefined;
  }
}
