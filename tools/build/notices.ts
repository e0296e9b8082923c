import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { z } from "zod";

const Person = z.union([z.string(), z.object({ name: z.string() }).transform(({ name }) => name)]);

const Package = z.object({
  name: z.string(),
  version: z.string(),
  license: z.string(),
  author: Person.optional(),
});
type Package = z.infer<typeof Package>;

const LICENCE_FILE = /^((un)?licen[cs]e|notice|copying)(\.|-|$)/i;

const LICENCE_SECTION = /^(#+ *licen[cs]e|licen[cs]e\n-+)\s*$/im;

/** The files that bundles hold parts of, relative to the checkout. */
export function heldFiles({ outputs }: Metafile): readonly string[] {
  return Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
  );
}

/**
 * The licences of the packages that a bundle holds parts of, each with its copyright lines.
 *
 * @param root the checkout
 * @param files what the bundle holds ({@link heldFiles})
 */
export async function thirdPartyNotices(root: string, files: readonly string[]): Promise<string> {
  const folders = [...new Set(files.flatMap((file) => packageFolder(file) ?? []))].toSorted();
  const notices = await Promise.all(folders.map((folder) => notice(join(root, folder))));
  return `This program holds parts of the packages below.\n${notices.join("")}`;
}

async function notice(folder: string): Promise<string> {
  const manifest = Package.parse(JSON.parse(await readFile(join(folder, "package.json"), "utf8")));
  const { name, version, license } = manifest;
  return `\n==== ${name} ${version}, ${license}\n\n${await licence(folder, manifest)}\n`;
}

async function licence(folder: string, { author = "unknown" }: Package): Promise<string> {
  const files = (await readdir(folder)).toSorted();
  const texts = await Promise.all(
    files.filter((file) => LICENCE_FILE.test(file)).map((file) => readFile(join(folder, file), "utf8")),
  );
  if (texts.length > 0) return texts.map((text) => text.trim()).join("\n\n");
  const readme = files.includes("README.md") ? await readFile(join(folder, "README.md"), "utf8") : "";
  const section = LICENCE_SECTION.exec(readme);
  if (section !== null) return readme.slice(section.index + section[0].length).trim();
  return `It comes without the text of that licence. Author: ${author}.`;
}

/** The folder of the innermost package that a file belongs to. */
function packageFolder(file: string): string | undefined {
  return /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1];
}
