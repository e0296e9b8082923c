import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterEach, beforeEach, expect, test } from "vitest";
import { adoptPushedImage, blobsOf, packLayout, writeImage } from "./oci-layout.ts";

const NAME = "docker.io/library/thing:test";
const BASE_LAYER = "a".repeat(64);
const OWN_LAYER = "b".repeat(64);
const CONFIG = "c".repeat(64);

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "oci-layout-"));
});

afterEach(() => rm(folder, { recursive: true }));

const readJson = async (...path: string[]) => JSON.parse(await readFile(join(folder, ...path), "utf8"));
const readBlob = (digest: string) => readJson("blobs/sha256", digest.replace("sha256:", ""));

test("an image of one layer has the name that containerd looks for, and a config that knows its layer", async () => {
  await writeFile(join(folder, "layer.tar"), "content");
  await writeImage(folder, NAME, join(folder, "layer.tar"), { Entrypoint: ["/thing"] });
  const [entry] = (await readJson("index.json")).manifests;
  expect(entry.annotations).toEqual({ "io.containerd.image.name": NAME });
  const manifest = await readBlob(entry.digest);
  const config = await readBlob(manifest.config.digest);
  expect(config.rootfs.diff_ids).toEqual([manifest.layers[0].digest]);
  expect(config.config).toEqual({ Entrypoint: ["/thing"] });
  expect(manifest.layers[0].size).toBe("content".length);
});

test("equal contents are equal digests", async () => {
  const digests = new Set<string>();
  for (const copy of ["one", "two"]) {
    const layout = join(folder, copy);
    await mkdir(layout);
    await writeFile(join(layout, "layer.tar"), "content");
    await writeImage(layout, NAME, join(layout, "layer.tar"), {});
    digests.add((await readJson(copy, "index.json")).manifests[0].digest);
  }
  expect(digests.size).toBe(1);
});

test("what buildah pushed is packed without the layers of the base, and its manifest as it was", async () => {
  const pushed = join(folder, "pushed");
  const layout = join(folder, "layout");
  await mkdir(pushed);
  const manifest = JSON.stringify({ layers: [{ digest: BASE_LAYER }, { digest: OWN_LAYER }] });
  await writeFile(join(pushed, "manifest.json"), manifest);
  await writeFile(join(pushed, "version"), "Directory Transport Version: 1.1\n");
  for (const blob of [BASE_LAYER, OWN_LAYER, CONFIG]) await writeFile(join(pushed, blob), blob);

  await adoptPushedImage(layout, NAME, pushed, [BASE_LAYER]);
  const [{ digest }] = (await readJson("layout/index.json")).manifests;
  const manifestBlob = digest.replace("sha256:", "");
  expect(await readFile(join(layout, "blobs/sha256", manifestBlob), "utf8")).toBe(manifest);
  expect((await blobsOf(layout)).toSorted()).toEqual([OWN_LAYER, CONFIG, manifestBlob].toSorted());

  await packLayout(layout, join(folder, "image.tar"));
  const { stdout } = await execa("tar", ["--list", "--file", join(folder, "image.tar")]);
  expect(stdout.split("\n")).toContain(`blobs/sha256/${OWN_LAYER}`);
  expect(stdout).not.toContain(BASE_LAYER);
});
