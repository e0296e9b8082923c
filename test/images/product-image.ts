import { mkdir, readdir, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { contentHash, exists } from "../system/cache.ts";
import { buildImage } from "./buildah.ts";
import { type CachedImage, cachedImage, storedName } from "./image.ts";
import { adoptPushedImage, blobsOf } from "./oci-layout.ts";

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
  const folders = [join(workspace, "dist/bundle"), join(workspace, "dist/plugin")];
  const files = [join(workspace, "Dockerfile"), ...(await Promise.all(folders.map(filesBelow))).flat()];
  const names = files.map((file) => relative(workspace, file));
  const key = await contentHash({ texts: [base.digest, ...names], files });
  return cachedImage(name, key, async (layout) => {
    const pushed = join(layout, "pushed");
    await mkdir(layout);
    await buildImage({ name: `${image}:${key}`, context: workspace, base: base.layout }, pushed);
    await adoptPushedImage(layout, storedName(name), pushed, await blobsOf(base.layout));
    await rm(pushed, { recursive: true });
  });
}

async function filesBelow(folder: string): Promise<string[]> {
  if (!(await exists(folder))) return [];
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
