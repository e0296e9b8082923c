import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { buildImage } from "./buildah.ts";
import { type CachedImage, cachedImage, storedName, withoutPath } from "./image.ts";
import { adoptPushedImage, blobsOf } from "./oci-layout.ts";

/**
 * An image from a folder with a Dockerfile, made once per content.
 *
 * @param name the name that a pod gives
 * @param key a hash of all that the image is made of
 * @param context the folder
 * @param base the image for `ARG BASE`; its layers are left out of the tarball
 */
export function dockerfileImage(
  name: string,
  key: string,
  context: string,
  base: CachedImage,
): Promise<CachedImage> {
  return cachedImage(name, key, async (layout) => {
    const pushed = join(layout, "pushed");
    await mkdir(layout);
    await buildImage({ name: `${withoutPath(name)}:${key}`, context, base: base.layout }, pushed);
    await adoptPushedImage(layout, storedName(name), pushed, await blobsOf(base.layout));
    await rm(pushed, { recursive: true });
  });
}
