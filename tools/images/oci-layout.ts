import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { execa } from "execa";

// Image layouts of https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md: a folder with
// oci-layout, index.json and blobs/sha256/*. Layers are not compressed: nodes that are emulated unpack them faster so.

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar";

export interface ContainerConfig {
  readonly Env?: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/**
 * Makes an image of one layer.
 *
 * @param folder becomes the layout
 * @param name the full name, with registry and tag, under which containerd stores the image
 * @param layer a tar file on the same file system; it is moved into the layout
 */
export async function writeImage(
  folder: string,
  name: string,
  layer: string,
  config: ContainerConfig,
): Promise<void> {
  const layerDescriptor = await adoptBlob(folder, layer, LAYER_TYPE);
  const configDescriptor = await writeBlob(folder, CONFIG_TYPE, {
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    config,
    // Of the uncompressed layer, which is the layer itself here.
    rootfs: { type: "layers", diff_ids: [layerDescriptor.digest] },
  });
  const manifest = {
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: configDescriptor,
    layers: [layerDescriptor],
  };
  await writeIndex(folder, name, await writeBlob(folder, MANIFEST_TYPE, manifest));
}

/**
 * Makes a layout of what `buildah push IMAGE dir:FOLDER` left: manifest.json, and blobs named by their sha256.
 *
 * @param folder becomes the layout
 * @param name the full name, with registry and tag, under which containerd stores the image
 * @param pushed the folder of the push, on the same file system; its files are moved
 * @param without blobs to leave out of the layout: who takes the image in must have them already
 */
export async function adoptPushedImage(
  folder: string,
  name: string,
  pushed: string,
  without: readonly string[],
): Promise<void> {
  await mkdir(join(folder, "blobs/sha256"), { recursive: true });
  for (const file of await readdir(pushed)) {
    const isBlob = /^[0-9a-f]{64}$/.test(file);
    if (isBlob && !without.includes(file)) await rename(join(pushed, file), blobPath(folder, file));
  }
  await writeIndex(folder, name, await adoptBlob(folder, join(pushed, "manifest.json"), MANIFEST_TYPE));
}

/** Packs a layout into one tar file, as `ctr images import` takes it. */
export async function packLayout(folder: string, file: string): Promise<void> {
  const members = ["oci-layout", "index.json", "blobs"];
  await execa("tar", [
    "--create",
    "--file",
    file,
    "--directory",
    folder,
    "--owner=0",
    "--group=0",
    ...members,
  ]);
}

/** The sha256 sums of a layout's blobs. */
export async function blobsOf(folder: string): Promise<string[]> {
  return readdir(join(folder, "blobs/sha256"));
}

async function writeIndex(folder: string, name: string, manifest: Descriptor): Promise<void> {
  const annotations = { "io.containerd.image.name": name };
  await writeFile(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  await writeFile(
    join(folder, "index.json"),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
  );
}

async function writeBlob(folder: string, mediaType: string, content: unknown): Promise<Descriptor> {
  const file = join(folder, "blob.json");
  await writeFile(file, JSON.stringify(content));
  return adoptBlob(folder, file, mediaType);
}

async function adoptBlob(folder: string, file: string, mediaType: string): Promise<Descriptor> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  const sum = hash.digest("hex");
  const { size } = await stat(file);
  await mkdir(join(folder, "blobs/sha256"), { recursive: true });
  await rename(file, blobPath(folder, sum));
  return { mediaType, digest: `sha256:${sum}`, size };
}

function blobPath(folder: string, sum: string): string {
  return join(folder, "blobs/sha256", sum);
}
