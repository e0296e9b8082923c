import { basename, join } from "node:path";
import type { ImageTarball } from "@egress-nat/tools/images";
import { baseImage } from "@egress-nat/tools/images/base-image";
import { dockerfileImage } from "@egress-nat/tools/images/dockerfile-image";
import { contentHash } from "@egress-nat/tools/system/cache";
import type { CoilSuite } from "./suite.ts";

const ROOT = join(import.meta.dirname, "../..");

/** By the names in the suite's manifests: a shell with curl and ip, and the HTTP server. One image serves as both. */
const NAMES = ["ghcr.io/cybozu/ubuntu-debug:22.04", "docker.io/library/echotest:dev"];

/** The images of the suite's pods. */
export async function coilImages({ folder, image }: CoilSuite): Promise<readonly ImageTarball[]> {
  const base = await baseImage(ROOT);
  const key = await contentHash({ texts: [base.digest, basename(folder)] });
  return Promise.all(NAMES.map((name) => dockerfileImage(name, key, image, base)));
}
