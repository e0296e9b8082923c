import { copyFile, mkdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { execa } from "execa";
import { goProgram } from "../system/go-program.ts";
import { type CachedImage, cachedImage } from "./image.ts";
import { writeImage } from "./oci-layout.ts";

// containerd's sandbox_image has to say the same.
const NAME = "registry.k8s.io/pause:3.10";

/** An executable that does nothing until it is ended. @returns its path in the cache */
export function pauseProgram(): Promise<string> {
  return goProgram({ name: "pause", folder: join(import.meta.dirname, "pause") });
}

/** The image of the sandbox container of every pod, so that nodes need no registry. */
export async function pauseImage(): Promise<CachedImage> {
  const program = await pauseProgram();
  const key = basename(dirname(program));
  return cachedImage(NAME, key, async (layout) => {
    const root = join(layout, "root");
    const tar = join(layout, "root.tar");
    await mkdir(root, { recursive: true });
    await copyFile(program, join(root, "pause"));
    await execa("tar", [
      "--create",
      "--file",
      tar,
      "--directory",
      root,
      "--owner=0",
      "--group=0",
      "--mtime=@0",
      "pause",
    ]);
    await rm(root, { recursive: true });
    await writeImage(layout, NAME, tar, { Entrypoint: ["/pause"] });
  });
}
