import { copyFile, mkdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { cachedImage } from "@egress-nat/tools/images/image";
import { writeImage } from "@egress-nat/tools/images/oci-layout";
import { goProgram } from "@egress-nat/tools/system/go-program";
import { execa } from "execa";
import type { ImageTarball } from "./node-disk.ts";

export const COREDNS_IMAGE = "registry.k8s.io/coredns/coredns:test";

/** The image of the cluster's DNS: CoreDNS, built from its Go module, and nothing else. */
export async function corednsImage(): Promise<ImageTarball> {
  const program = await goProgram({
    name: "coredns",
    folder: join(import.meta.dirname, "coredns"),
    versionOf: "github.com/coredns/coredns",
  });
  return cachedImage(COREDNS_IMAGE, basename(dirname(program)), async (layout) => {
    const root = join(layout, "root");
    const tar = join(layout, "root.tar");
    await mkdir(root, { recursive: true });
    await copyFile(program, join(root, "coredns"));
    const owner = ["--owner=0", "--group=0", "--mtime=@0"];
    await execa("tar", ["--create", "--file", tar, "--directory", root, ...owner, "coredns"]);
    await rm(root, { recursive: true });
    await writeImage(layout, COREDNS_IMAGE, tar, { Entrypoint: ["/coredns"] });
  });
}
