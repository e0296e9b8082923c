import { z } from "zod";
import { type Command, needCommands } from "../system/debian-packages.ts";
import { type Architecture, HOST_ARCHITECTURE } from "./quickjs/engine.ts";

/** The processor that the CNI plugin is tested for. */
export interface TestedProcessor {
  readonly architecture: Architecture;
  /** What runs an executable for it here. */
  readonly emulator: readonly string[];
}

const EMULATED = {
  arm64: { architecture: "arm64", emulator: ["qemu-aarch64", "-cpu", "cortex-a53"] },
  /** Without what came after x86-64's first version. */
  "old-amd64": { architecture: "amd64", emulator: ["qemu-x86_64", "-cpu", "Opteron_G1"] },
} as const satisfies Record<string, TestedProcessor & { readonly emulator: readonly [Command, ...string[]] }>;

const Name = z.enum(Object.keys(EMULATED) as [keyof typeof EMULATED]).optional();

/** This machine's, unless PLUGIN_PROCESSOR names another one. */
export async function testedProcessor(): Promise<TestedProcessor> {
  const name = Name.parse(process.env.PLUGIN_PROCESSOR);
  if (name === undefined) return { architecture: HOST_ARCHITECTURE, emulator: [] };
  const processor = EMULATED[name];
  await needCommands([processor.emulator[0]]);
  return processor;
}
