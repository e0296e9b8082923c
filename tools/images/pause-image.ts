import { join } from "node:path";
import { goProgram } from "../system/go-program.ts";
import type { CachedImage } from "./image.ts";
import { programImage } from "./program-image.ts";

// containerd's sandbox_image has to say the same.
const NAME = "registry.k8s.io/pause:3.10";

/** An executable that does nothing until it is ended. @returns its path in the cache */
export function pauseProgram(): Promise<string> {
  return goProgram({ name: "pause", folder: join(import.meta.dirname, "pause") });
}

/** The image of the sandbox container of every pod, so that nodes need no registry. */
export async function pauseImage(): Promise<CachedImage> {
  return programImage(NAME, await pauseProgram());
}
