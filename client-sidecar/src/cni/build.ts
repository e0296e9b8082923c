/** Compiles the CNI plugin to one executable that needs nothing on the node but glibc. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/**
 * Environment variables that give whoever sets them the whole runtime inside the executable: BUN_BE_BUN turns it into
 * the Bun command line, BUN_OPTIONS injects options such as --preload. Those of bytecode name files that are written. The
 * executable runs as root on every node.
 */
const BACKDOORS = [
  "BUN_BE_BUN",
  "BUN_OPTIONS",
  "BUN_BYTECODE_DIGEST_OUT",
  "BUN_BYTECODE_ORDER_OUT",
  "BUN_BYTECODE_ORDER_NAMES_OUT",
] as const;

/**
 * How much later than usual functions are compiled to machine code: never, in a process that lives for ten milliseconds.
 * Threads that would do so cost it a twentieth of them.
 */
const JIT_POLICY = 100;

const ELF_MAGIC = Buffer.from("\x7fELF");

export interface CompileOptions {
  /** Path of the executable to write. */
  readonly outfile: string;
  /** The program; the plugin itself but in tests. */
  readonly entry?: string;
}

/**
 * @throws Error when Bun is not installed, or the source does not compile
 */
export async function compilePlugin({ outfile, entry = sourceOf("main.ts") }: CompileOptions): Promise<void> {
  await mkdir(dirname(outfile), { recursive: true });
  const raw = `${outfile}.raw`;
  await promisify(execFile)(
    await findBun(),
    [
      ...["build", "--compile", "--minify", "--bytecode", "--format=esm", "--conditions=source"],
      ...["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"],
      ...[`--compile-jit-policy=${JIT_POLICY}`, entry, "--outfile", raw],
    ],
    { cwd: dirname(outfile) },
  );
  await writeFile(raw, closeBackdoors(await readFile(raw)));
  await rename(raw, outfile);
}

/**
 * Overwrites the names of variables that must have no effect, length for length: offsets in the file stay as they are.
 * No variable's name holds a zero byte.
 *
 * @throws Error when a name is not there: a newer Bun spells it otherwise, and someone has to look
 */
export function closeBackdoors(executable: Buffer): Buffer {
  const closed = Buffer.from(executable);
  for (const name of BACKDOORS) {
    let at = closed.indexOf(name);
    if (at < 0)
      throw new Error(`the compiled plugin does not mention ${name}: check how this Bun can be misused`);
    for (; at >= 0; at = closed.indexOf(name, at + name.length)) closed.fill(0, at, at + name.length);
  }
  return closed;
}

/** Bun's package holds a placeholder until its install script has run; the platform's package holds the binary. */
async function findBun(): Promise<string> {
  const resolve = createRequire(import.meta.url).resolve;
  const folder = (name: string) => dirname(resolve(`${name}/package.json`));
  const platform = `@oven/bun-linux-${arch() === "arm64" ? "aarch64" : "x64"}`;
  const candidates = [join(folder(platform), "bin/bun"), join(folder("bun"), "bin/bun.exe")];
  for (const candidate of candidates) if (await isExecutable(candidate)) return candidate;
  throw new Error(`no Bun in ${candidates.join(" nor ")}: run npm ci`);
}

async function isExecutable(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(ELF_MAGIC.length), 0, ELF_MAGIC.length, 0);
  return buffer.equals(ELF_MAGIC);
}

/** The TypeScript source, also where this file runs compiled from dist: Bun takes TypeScript. */
function sourceOf(file: string): string {
  return fileURLToPath(new URL(`../../src/cni/${file}`, import.meta.url));
}
