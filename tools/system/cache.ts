import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { withLock } from "./lock.ts";

/** Everything that is built once and kept between runs, outside the checkout. */
export const CACHE_FOLDER = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "egress-nat");

/**
 * A folder of the cache, made on first use. Its name holds everything that it depends on, so it is never stale, and
 * it appears under that name only when it is complete: an interrupted build leaves nothing behind that counts.
 *
 * @param name what it is, for people
 * @param key version and content hash of its inputs
 * @param make fills an empty folder
 * @returns the path of the folder
 */
export async function cachedFolder(
  name: string,
  key: string,
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const final = join(CACHE_FOLDER, name, key);
  if (await exists(final)) return final;
  await mkdir(dirname(final), { recursive: true });
  // Programs that run side by side would build the same thing, at twice the cost and in each other's way.
  return withLock(join(CACHE_FOLDER, name, `.${key}.lock`), async () => {
    if (await exists(final)) return final;
    const draft = await mkdtemp(join(CACHE_FOLDER, name, ".draft-"));
    try {
      await make(draft);
      await rename(draft, final);
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
    return final;
  });
}

/**
 * Notes that a folder is used, and removes its siblings but for those that were used last.
 *
 * @param used a folder that {@link cachedFolder} returned
 * @param count how many to keep, with this one
 */
export async function keepNewest(used: string, count: number): Promise<void> {
  const now = new Date();
  await utimes(used, now, now);
  const siblings = dirname(used);
  const names = (await readdir(siblings)).filter((name) => !name.startsWith("."));
  const folders = await Promise.all(
    names.map(async (name) => ({
      path: join(siblings, name),
      usedAt: (await stat(join(siblings, name))).mtimeMs,
    })),
  );
  for (const { path } of folders.toSorted((a, b) => b.usedAt - a.usedAt).slice(count)) {
    await rm(path, { recursive: true, force: true });
  }
}

/** A short hash of texts and files, for the key of a cached folder. */
export async function contentHash(inputs: {
  texts?: readonly string[];
  files?: readonly string[];
}): Promise<string> {
  const hash = createHash("sha256");
  for (const text of inputs.texts ?? []) hash.update(text).update("\0");
  for (const file of inputs.files ?? []) hash.update(await readFile(file)).update("\0");
  return hash.digest("hex").slice(0, 16);
}

/** The files of a folder, not of its subfolders, as sorted paths. */
export async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(folder, entry.name))
    .sort();
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
