import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fencesIn, ROOT } from "@egress-nat/test/docs/markdown";
import { execa } from "execa";

/** What a stranger's npm and Node know nothing of. */
const STRANGERS = { NODE_OPTIONS: "" };

/**
 * Packs founat as it would be published.
 *
 * @param folder an empty one, because packing builds, and somebody may be building in the checkout
 * @returns the tarball
 */
export async function packFounat(folder: string): Promise<string> {
  const own = join(folder, "founat");
  await cp(join(ROOT, "tsconfig.base.json"), join(folder, "tsconfig.base.json"));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await cp(join(ROOT, "founat"), own, {
    recursive: true,
    filter: (path) => !/\/(dist|node_modules)$/.test(path),
  });
  const { stdout } = await execa("npm", ["pack", "--pack-destination", folder], { cwd: own, env: STRANGERS });
  return join(folder, stdout.trim().split("\n").at(-1) ?? "");
}

/**
 * Makes a project of a folder, with a tarball as its only dependency; what that depends on is there already, because the
 * registry is not asked.
 */
export async function installTarball(tarball: string, folder: string): Promise<void> {
  const manifest = { name: "a-project", private: true, type: "module" };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  const dependencies = ["zod", "ipaddr.js"].map((name) => join(ROOT, "node_modules", name));
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
  await execa("npm", ["install", "--offline", "--install-links", ...quiet, tarball, ...dependencies], {
    cwd: folder,
    env: STRANGERS,
  });
}

/** The example of the README, as a file of a project. */
export async function writeReadmeExample(folder: string): Promise<string> {
  const [example] = fencesIn("founat/README.md").filter(({ language }) => language === "ts");
  const file = join(folder, "example.ts");
  await writeFile(file, example?.code ?? "");
  return file;
}
