import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { HOST_ARCHITECTURE } from "../build/quickjs/engine.ts";
import { contentHash, exists } from "../system/cache.ts";
import { dockerfileImage } from "./dockerfile-image.ts";
import type { CachedImage } from "./image.ts";

/**
 * One of the product's images, from its workspace's Dockerfile and what `npm run build` made for it.
 *
 * @param image the image's name without a tag
 * @param workspace the folder of the workspace, built already
 * @param base the image for `ARG BASE`; its layers are left out of the tarball
 */
export async function productImage(
  image: string,
  workspace: string,
  base: CachedImage,
): Promise<CachedImage> {
  const name = `${image}:test`;
  const folders = [join(workspace, "dist/bundle"), join(workspace, "dist/plugin", HOST_ARCHITECTURE)];
  const files = [join(workspace, "Dockerfile"), ...(await Promise.all(folders.map(filesBelow))).flat()];
  const names = files.map((file) => relative(workspace, file));
  const key = await contentHash({ texts: [base.digest, ...names], files });
  return dockerfileImage(name, key, workspace, base);
}

async function filesBelow(folder: string): Promise<string[]> {
  if (!(await exists(folder))) return [];
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
