import { z } from "zod";
import { needCommands } from "../system/debian-packages.ts";
import { ARCHITECTURES, type Architecture, HOST_ARCHITECTURE } from "./quickjs/engine.ts";

const EMULATORS = { amd64: "qemu-x86_64", arm64: "qemu-aarch64" } as const;

/** The processor that the CNI plugin is tested for: this machine's, unless PLUGIN_ARCHITECTURE names another one. */
export interface TestedProcessor {
  readonly architecture: Architecture;
  /** What runs an executable for it here. */
  readonly emulator: readonly string[];
}

export async function testedProcessor(): Promise<TestedProcessor> {
  const wanted = z.enum(ARCHITECTURES).default(HOST_ARCHITECTURE);
  const architecture = wanted.parse(process.env.PLUGIN_ARCHITECTURE);
  if (architecture === HOST_ARCHITECTURE) return { architecture, emulator: [] };
  const emulator = EMULATORS[architecture];
  await needCommands([emulator]);
  return { architecture, emulator: [emulator] };
}
