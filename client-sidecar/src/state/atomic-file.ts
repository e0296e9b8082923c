import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Temporary files begin with a dot: whoever lists a directory leaves them out by this. */
export const isTemporary = (file: string): boolean => file.startsWith(".");

/**
 * Writes a file so that a reader, or whoever looks after a crash, sees the old content or the new one, never a part.
 *
 * @param path its directory is made when missing
 * @param mode of the file; the default lets only its owner read it
 */
export function writeFileAtomically(path: string, content: string, mode = 0o600): void {
  const directory = dirname(path);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const temporary = join(directory, `.${basename(path)}.${process.pid}`);
  try {
    writeDurably(temporary, content, mode);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncDirectory(directory);
}

/** A rename is on disk only when its directory is: fsync(2). */
export function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function writeDurably(path: string, content: string, mode: number): void {
  const descriptor = openSync(path, "w", mode);
  try {
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
