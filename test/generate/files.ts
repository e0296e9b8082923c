/** The generated files of the repository, and what the disk holds of them. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type GeneratedFile, generatedFiles } from "@egress-nat/crds/generate";
import { plainYaml } from "../chart/plain-yaml.ts";
import { chartReadme } from "../chart/values-table.ts";
import { cniMatrix } from "../cni/document.ts";

const ROOT = join(import.meta.dirname, "../..");

/** In this order: the plain YAML holds the definitions that lie in the chart's folder. */
const GENERATORS = [generatedFiles, plainYaml, chartReadme, cniMatrix];

/** Those of the generated files that the disk holds differently, or not at all. */
export async function outdatedFiles(): Promise<readonly GeneratedFile[]> {
  return (await Promise.all(GENERATORS.map(outdated))).flat();
}

/** Writes the generated files that are not up to date. @returns their paths */
export async function writeOutdatedFiles(): Promise<readonly string[]> {
  const written: string[] = [];
  for (const generate of GENERATORS) {
    for (const { path, text } of await outdated(generate)) {
      await mkdir(dirname(join(ROOT, path)), { recursive: true });
      await writeFile(join(ROOT, path), text);
      written.push(path);
    }
  }
  return written;
}

async function outdated(
  generate: () => Promise<readonly GeneratedFile[]>,
): Promise<readonly GeneratedFile[]> {
  const files = await generate();
  const onDisk = await Promise.all(
    files.map(({ path }) => readFile(join(ROOT, path), "utf8").catch(() => "")),
  );
  return files.filter(({ text }, index) => onDisk[index] !== text);
}
