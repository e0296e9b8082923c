import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { cachedFolder, keepNewest } from "../system/cache.ts";
import { packLayout } from "./oci-layout.ts";

/** One image for the nodes of a test cluster. */
export interface ImageTarball {
  /** The name that a pod gives, such as `egress-nat-operator:test`. */
  readonly name: string;
  /** A tar file for `ctr --namespace k8s.io images import`. */
  readonly file: string;
  /** The digest of the image's manifest: another one means another content. */
  readonly digest: string;
}

export interface CachedImage extends ImageTarball {
  /** The folder of the image layout, to build on. */
  readonly layout: string;
}

/** Of each image: this checkout's, and what one may go back to. */
const KEPT = 3;

const Index = z.object({ manifests: z.tuple([z.object({ digest: z.string() })]) });

/**
 * Makes an image once per content and keeps it in the cache, as a layout (to build on) and as a tarball (for nodes).
 *
 * @param name the name that a pod gives
 * @param key a hash of all that the image is made of
 * @param make fills an empty folder with an image layout
 */
export async function cachedImage(
  name: string,
  key: string,
  make: (layout: string) => Promise<void>,
): Promise<CachedImage> {
  const folder = await cachedFolder(`images/${withoutPath(name)}`, key, async (draft) => {
    await make(join(draft, "layout"));
    await packLayout(join(draft, "layout"), join(draft, "image.tar"));
  });
  await keepNewest(folder, KEPT);
  const layout = join(folder, "layout");
  const index = Index.parse(JSON.parse(await readFile(join(layout, "index.json"), "utf8")));
  return { name, file: join(folder, "image.tar"), digest: index.manifests[0].digest, layout };
}

/** The name under which containerd stores an image: kubelet asks for `busybox` as `docker.io/library/busybox:latest`. */
export function storedName(name: string): string {
  return name.includes("/") ? name : `docker.io/library/${name}`;
}

/** Without registry, path and tag. */
export function withoutPath(name: string): string {
  return name.replace(/^.*\//, "").replace(/:.*$/, "");
}
