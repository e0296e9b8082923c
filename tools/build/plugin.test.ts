import { mkdir, mkdtemp, readFile, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundlePlugin, compilePlugin, type PluginScript } from "./plugin.ts";
import { type TestedProcessor, testedProcessor } from "./tested-processor.ts";

/** Fields of the header of a 64-bit ELF file: elf(5). */
const ELF = { machine: 18, programHeaders: 32, programHeaderSize: 54, programHeaderCount: 56 } as const;
const MACHINES = { amd64: 62, arm64: 183 } as const;
const PT_INTERP = 3;

let folder: string;
let script: PluginScript;
let plugin: string;
let processor: TestedProcessor;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plugin-"));
  [script, processor] = await Promise.all([bundlePlugin(), testedProcessor()]);
  plugin = join(folder, "egress-nat");
  await compilePlugin(script, plugin, processor.architecture);
}, 300_000);

afterAll(() => rm(folder, { recursive: true }));

test("the plugin is for the processor that it was built for, and needs no libc of the node: it has no interpreter", async () => {
  const executable = await readFile(plugin);
  expect(executable.readUInt16LE(ELF.machine)).toBe(MACHINES[processor.architecture]);
  expect(segments(executable)).not.toContain(PT_INTERP);
});

test("the plugin answers in a working directory that is gone", async () => {
  const gone = join(folder, "gone");
  await mkdir(gone);
  const [file = "", ...args] = [...processor.emulator, plugin];
  const answer = execa(file, args, { cwd: gone, env: { CNI_COMMAND: "VERSION" }, extendEnv: false });
  await rmdir(gone);
  answer.stdin?.end();
  expect(JSON.parse((await answer).stdout)).toMatchObject({ cniVersion: "1.1.0" });
});

test("the plugin holds no schema library", () => {
  expect(script.text).not.toContain("ZodError");
});

/** Types of the program headers. */
function segments(elf: Buffer): number[] {
  const first = Number(elf.readBigUInt64LE(ELF.programHeaders));
  const size = elf.readUInt16LE(ELF.programHeaderSize);
  const count = elf.readUInt16LE(ELF.programHeaderCount);
  return Array.from({ length: count }, (_, index) => elf.readUInt32LE(first + index * size));
}
