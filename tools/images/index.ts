import { join } from "node:path";
import { buildPrograms } from "../build/index.ts";
import { baseImage } from "./base-image.ts";
import type { ImageTarball } from "./image.ts";
import { pauseImage } from "./pause-image.ts";
import { productImage } from "./product-image.ts";

export { TOOLBOX_IMAGE } from "./base-image.ts";
export type { ImageTarball } from "./image.ts";

const ROOT = join(import.meta.dirname, "../..");

const PRODUCT_IMAGES = {
  "egress-nat-operator": "operator",
  "egress-nat-egress-pod": "egress-pod",
  "egress-nat-node-agent": "client-sidecar",
};

/**
 * Everything that a node of a test cluster runs, built from the checkout as it is; what did not change since the last
 * call is taken from the cache.
 *
 * @returns the images in the order in which a node has to import them: the product's images leave out the layer that
 *   they share with {@link TOOLBOX_IMAGE}, which comes before them
 */
export async function imageTarballs(): Promise<readonly ImageTarball[]> {
  const [pause, base] = await Promise.all([pauseImage(), baseImage(ROOT), buildPrograms()]);
  const products = await Promise.all(
    Object.entries(PRODUCT_IMAGES).map(([image, workspace]) =>
      productImage(image, join(ROOT, workspace), base),
    ),
  );
  return [pause, base, ...products].map(({ name, file, digest }) => ({ name, file, digest }));
}
