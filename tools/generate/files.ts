/** The generated files of the repository, and what the disk holds of them. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type GeneratedFile, generatedFiles } from "@egress-nat/crds/generate";
import { plainYaml } from "../chart/plain-yaml.ts";
import { chartReadme } from "../chart/values-table.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Makes files of the repository, with their paths in it. */
export type Generator = () => Promise<readonly GeneratedFile[]>;

/** In this order: the plain YAML holds the definitions that lie in the chart's folder. */
export const GENERATORS: readonly Generator[] = [generatedFiles, plainYaml, chartReadme];

/** Those of the generated files that the disk holds differently, or not at all. */
export async function outdatedFiles(generators: readonly Generator[]): Promise<readonly GeneratedFile[]> {
  return (await Promise.all(generators.map(outdated))).flat();
}

/** Writes the generated files that are not up to date. @returns their paths */
export async function writeOutdatedFiles(generators: readonly Generator[]): Promise<readonly string[]> {
  const written: string[] = [];
  for (const generate of generators) {
    for (const { path, text } of await outdated(generate)) {
      await mkdir(dirname(join(ROOT, path)), { recursive: true });
      await writeFile(join(ROOT, path), text);
      written.push(path);
    }
  }
  return written;
}

async function outdated(generate: Generator): Promise<readonly GeneratedFile[]> {
  const files = await generate();
  const onDisk = await Promise.all(
    files.map(({ path }) => readFile(join(ROOT, path), "utf8").catch(() => "")),
  );
  return files.filter(({ text }, index) => onDisk[index] !== text);
}
