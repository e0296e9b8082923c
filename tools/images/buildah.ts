import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { execa } from "execa";
import { CACHE_FOLDER } from "../system/cache.ts";
import { needCommands } from "../system/debian-packages.ts";
import { ToolError } from "../system/tool-error.ts";

// vfs and chroot work everywhere, also where there are no user namespaces and no overlay file system.
const SETTINGS = { STORAGE_DRIVER: "vfs", BUILDAH_ISOLATION: "chroot" };

export interface Build {
  /** A name for the image in buildah's own storage, unique per content. */
  readonly name: string;
  /** The folder with the Dockerfile, and what it copies. */
  readonly context: string;
  /** The layout of the image for the Dockerfile's `ARG BASE`. */
  readonly base: string;
}

/**
 * Builds an ordinary Dockerfile, with no network and no daemon.
 *
 * @param destination a folder for the image, in the form of buildah's `dir:` transport with layers uncompressed
 * @throws ToolError `packages-missing`, `image-build-failed`
 */
export async function buildImage(build: Build, destination: string): Promise<void> {
  // A relative reference, because buildah derives the name of the image from it.
  await buildah(
    ["pull", "--quiet", `oci:${basename(dirname(build.base))}/layout`],
    dirname(dirname(build.base)),
  );
  const base = `localhost/${basename(dirname(build.base))}/layout`;
  await buildah(
    // A fixed time makes equal contents equal digests.
    [
      "build",
      "--quiet",
      "--pull-never",
      "--network",
      "none",
      "--timestamp",
      "0",
      "--build-arg",
      `BASE=${base}`,
    ].concat(["--tag", `localhost/${build.name}`, build.context]),
    build.context,
  );
  await buildah(
    ["push", "--quiet", "--disable-compression", `localhost/${build.name}`, `dir:${destination}`],
    build.context,
  );
  await buildah(["rmi", `localhost/${build.name}`], build.context);
}

async function buildah(args: readonly string[], cwd: string): Promise<void> {
  await needCommands(["buildah"]);
  const storage = join(CACHE_FOLDER, "buildah");
  await mkdir(storage, { recursive: true });
  const result = await execa(
    "buildah",
    ["--root", join(storage, "root"), "--runroot", join(storage, "run"), ...args],
    {
      cwd,
      env: SETTINGS,
      reject: false,
      all: true,
    },
  );
  if (result.failed) {
    throw new ToolError("image-build-failed", `buildah ${args.join(" ")} failed in ${cwd}:\n${result.all}`);
  }
}
