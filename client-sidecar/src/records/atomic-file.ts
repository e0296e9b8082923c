import {
  closeSync,
  fchmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Writes a file so that a reader, or whoever looks after a crash, sees the old content or the new one, never a part.
 *
 * @param path its directory is made when missing
 * @param mode of the file; the default lets only its owner read it
 */
export function writeFileAtomically(path: string, content: string | Uint8Array, mode = 0o600): void {
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

/** The file is closed before it gets its name: one that is open for writing cannot be executed. */
function writeDurably(path: string, content: string | Uint8Array, mode: number): void {
  const descriptor = openSync(path, "w", mode);
  try {
    fchmodSync(descriptor, mode);
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
