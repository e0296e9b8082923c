import { join } from "node:path";
import type { ImageTarball } from "@egress-nat/tools/images";
import { programImage } from "@egress-nat/tools/images/program-image";
import { goProgram } from "@egress-nat/tools/system/go-program";

/** The image of a client pod: the program, and nothing else. */
export const LOAD_IMAGE = "chaos-load:test";

/** Path of the program in that image. */
export const LOAD_COMMAND = "/chaos-load";

/** The program of load/main.go, built on first use. @returns its path in the cache */
export function loadProgram(): Promise<string> {
  return goProgram({ name: "chaos-load", folder: join(import.meta.dirname, "load") });
}

export async function loadImage(): Promise<ImageTarball> {
  return programImage(LOAD_IMAGE, await loadProgram());
}
