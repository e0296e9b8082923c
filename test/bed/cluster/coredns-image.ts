import { join } from "node:path";
import type { ImageTarball } from "@egress-nat/tools/images";
import { programImage } from "@egress-nat/tools/images/program-image";
import { goProgram } from "@egress-nat/tools/system/go-program";

export const COREDNS_IMAGE = "registry.k8s.io/coredns/coredns:test";

/** The image of the cluster's DNS: CoreDNS, built from its Go module, and nothing else. */
export async function corednsImage(): Promise<ImageTarball> {
  const program = await goProgram({
    name: "coredns",
    folder: join(import.meta.dirname, "coredns"),
    versionOf: "github.com/coredns/coredns",
  });
  return programImage(COREDNS_IMAGE, program);
}
