import { copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { heldFiles, thirdPartyNotices } from "./notices.ts";

const ROOT = join(import.meta.dirname, "../..");

/** A CommonJS dependency that asks for a built-in module by require() finds none in an ES module: this gives it one. */
const REQUIRE_BANNER =
  'import{createRequire as createRequireForBundle}from"node:module";const require=createRequireForBundle(import.meta.url);';

/**
 * In the place of @kubernetes/client-node, as far as the base class of @dot-i/k8s-operator asks for it. Its constructor
 * loads a kubeconfig and makes a client of the core API, and the operator uses neither: it would be half of its start.
 */
const CLIENT_NODE_FOR_OPERATOR = `
  export class KubeConfig {
    loadFromDefault() {}
    makeApiClient() {}
  }
  export class CoreV1Api {}
`;

/** Only require() of it is the base class's; the project imports it, where there is a kubeconfig to read. */
const withoutClientNode: Plugin = {
  name: "without-client-node",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@kubernetes\/client-node$/ }, ({ kind }) =>
      kind === "require-call" ? { path: "client-node", namespace: "without-client-node" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "without-client-node" }, () => ({
      contents: CLIENT_NODE_FOR_OPERATOR,
    }));
  },
};

/** Programs complain in English: the other translations of zod's messages are half of zod. */
const withoutTranslations: Plugin = {
  name: "without-translations",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\.\/locales\/index\.js$/ }, ({ importer }) =>
      importer.includes("/node_modules/zod/")
        ? { path: "locales", namespace: "without-translations" }
        : undefined,
    );
    onLoad({ filter: /.*/, namespace: "without-translations" }, () => ({ contents: "" }));
  },
};

/**
 * Built-in modules are required: to import one is to read all that it exports, and `WebSocket` of node:http is the whole
 * of Node's undici, a fifth of the time in which an agent starts.
 */
const builtInModulesByRequire: Plugin = {
  name: "built-in-modules-by-require",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ kind, path }) =>
      kind === "import-statement" && isBuiltin(path) ? { path, namespace: "built-in" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "built-in" }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)});`,
    }));
  },
};

/**
 * Bundles a program and all that it imports into ES modules that begin with `main.js`, beside the licences of all of it.
 *
 * @param entry the program's TypeScript
 * @param folder where it goes; emptied first
 */
export async function bundleProgram(entry: string, folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    metafile: true,
    entryPoints: { main: entry },
    outdir: folder,
    bundle: true,
    // What is imported on demand stays out of the memory of programs that never ask for it.
    splitting: true,
    chunkNames: "[name]-[hash]",
    platform: "node",
    target: "node24",
    format: "esm",
    conditions: ["source"],
    // What it exports to Node loads its parts in a way that no bundler sees.
    alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
    banner: { js: REQUIRE_BANNER },
    plugins: [withoutClientNode, withoutTranslations, builtInModulesByRequire],
    // Identifiers stay, so that a stack trace in a log can be read without source maps.
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "none",
    logLevel: "silent",
  });
  const notices = await thirdPartyNotices(ROOT, heldFiles(metafile));
  await writeFile(join(folder, "THIRD_PARTY_NOTICES"), notices);
  await copyFile(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  // Node would otherwise parse the bundle twice to find out that it is an ES module.
  await writeFile(join(folder, "package.json"), '{"type":"module"}\n');
}
