import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { execa } from "execa";
import { type CachedImage, cachedImage, storedName } from "./image.ts";
import { writeImage } from "./oci-layout.ts";

/**
 * An image of one static executable, and nothing else.
 *
 * @param name the name that a pod gives
 * @param program path of the executable in the cache, in a folder that is named for its content
 */
export function programImage(name: string, program: string): Promise<CachedImage> {
  const folder = dirname(program);
  const file = basename(program);
  return cachedImage(name, basename(folder), async (layout) => {
    await mkdir(layout);
    const tar = join(layout, "root.tar");
    const owner = ["--owner=0", "--group=0", "--mtime=@0"];
    await execa("tar", ["--create", "--file", tar, "--directory", folder, ...owner, file]);
    await writeImage(layout, storedName(name), tar, { Entrypoint: [`/${file}`] });
  });
}
