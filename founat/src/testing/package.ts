import { cp, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fencesIn, ROOT } from "@egress-nat/test/docs/markdown";
import { execa } from "execa";

/** What a stranger's npm and Node know nothing of. */
const STRANGERS = { NODE_OPTIONS: "" };

/** founat, and that of this project which it depends on: they are published together. */
export const PACKAGES = ["addresses", "founat"] as const;

type Tarballs = Readonly<Record<(typeof PACKAGES)[number], string>>;

/**
 * Packs founat, and what it depends on, as they would be published.
 *
 * @param folder an empty one, because packing builds, and somebody may be building in the checkout
 * @returns the tarballs
 */
export async function pack(folder: string): Promise<Tarballs> {
  const modules = join(folder, "node_modules");
  await cp(join(ROOT, "tsconfig.base.json"), join(folder, "tsconfig.base.json"));
  await mkdir(join(modules, "@egress-nat"), { recursive: true });
  for (const name of await readdir(join(ROOT, "node_modules"))) {
    if (name !== "@egress-nat") await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
  const tarballs: Record<string, string> = {};
  for (const name of PACKAGES) {
    const own = join(folder, name);
    await cp(join(ROOT, name), own, {
      recursive: true,
      filter: (path) => !/\/(dist|node_modules)$/.test(path),
    });
    await symlink(own, join(modules, "@egress-nat", name));
    const { stdout } = await execa("npm", ["pack", "--pack-destination", folder], {
      cwd: own,
      env: STRANGERS,
    });
    tarballs[name] = join(folder, stdout.trim().split("\n").at(-1) ?? "");
  }
  return tarballs as Tarballs;
}

/**
 * Makes a project of a folder, with founat as its only dependency; what that depends on is there already, because the
 * registry is not asked.
 */
export async function installTarballs(tarballs: Tarballs, folder: string): Promise<void> {
  const manifest = { name: "a-project", private: true, type: "module" };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  const others = ["zod", "ip-bigint", "cidr-regex"].map((name) => join(ROOT, "node_modules", name));
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
  await execa(
    "npm",
    ["install", "--offline", "--install-links", ...quiet, ...Object.values(tarballs), ...others],
    {
      cwd: folder,
      env: STRANGERS,
    },
  );
}

/** The example of the README, as a file of a project. */
export async function writeReadmeExample(folder: string): Promise<string> {
  const [example] = fencesIn("founat/README.md").filter(({ language }) => language === "ts");
  const file = join(folder, "example.ts");
  await writeFile(file, example?.code ?? "");
  return file;
}
