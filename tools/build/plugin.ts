import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { build, type Plugin } from "esbuild";
import { cachedFolder, contentHash } from "../system/cache.ts";
import { heldFiles } from "./notices.ts";
import { type Architecture, Engine, HOST_ARCHITECTURE, run } from "./quickjs/engine.ts";

const ROOT = join(import.meta.dirname, "../..");
const PLUGIN = join(ROOT, "client-sidecar/src/cni");
const COMPILER = join(import.meta.dirname, "quickjs/compiler.c");

/** There are none in the executable; what is imported of them for functions that it does not use goes with these. */
const withoutBuiltInModules: Plugin = {
  name: "without-built-in-modules",
  setup({ onResolve }) {
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, external: true, sideEffects: false }));
  },
};

/** The plugin as one script. */
export interface PluginScript {
  readonly text: string;
  /** What it holds parts of, relative to the checkout. */
  readonly files: readonly string[];
}

/**
 * @param entry the program; the plugin itself but in tests
 * @throws Error when it does not compile, or needs a module of Node
 */
export async function bundlePlugin(entry = join(PLUGIN, "main.ts")): Promise<PluginScript> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    metafile: true,
    write: false,
    bundle: true,
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2023",
    format: "iife",
    conditions: ["source"],
    plugins: [withoutBuiltInModules],
    minify: true,
    legalComments: "none",
    logLevel: "silent",
  });
  const [{ text } = { text: "" }] = outputFiles;
  const needed = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
  if (needed.length > 0)
    throw new Error(`the plugin needs ${needed.join(", ")}, which is not in its executable`);
  return { text, files: heldFiles(metafile) };
}

/**
 * Compiles the CNI plugin to a static executable: its script to bytecode of QuickJS-NG, linked with host.c and the engine.
 *
 * @param outfile path of the executable to write
 * @throws ToolError `packages-missing`, `quickjs-failed`
 */
export async function compilePlugin(
  { text }: PluginScript,
  outfile: string,
  architecture: Architecture = HOST_ARCHITECTURE,
): Promise<void> {
  const [compiler, engine] = await Promise.all([bytecodeCompiler(), Engine.for(architecture)]);
  const folder = dirname(outfile);
  await mkdir(folder, { recursive: true });
  // Beside the folder: all that is in that goes into an image.
  const draft = await mkdtemp(`${folder}.`);
  try {
    const [bytecode, executable] = [join(draft, "program.c"), join(draft, "plugin")];
    await writeFile(bytecode, await run(compiler, [], { input: text }));
    await engine.link([join(PLUGIN, "host/host.c"), bytecode], executable);
    await rename(executable, outfile);
  } finally {
    await rm(draft, { recursive: true });
  }
}

/** Runs on this machine. Bytecode is the same for all processors of one byte order. */
async function bytecodeCompiler(): Promise<string> {
  const engine = await Engine.for(HOST_ARCHITECTURE);
  const key = await contentHash({ texts: [engine.folder], files: [COMPILER] });
  const folder = await cachedFolder("quickjs/compiler", key, (draft) =>
    engine.link([COMPILER], join(draft, "compiler")),
  );
  return join(folder, "compiler");
}
