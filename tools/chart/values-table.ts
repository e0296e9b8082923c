/** The table of values in the chart's README, from the comments in values.yaml. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { GeneratedFile } from "@egress-nat/crds/generate";
import { isMap, isScalar, type Node, parseDocument } from "yaml";
import { markdownTable, replaceBetweenMarks } from "../generate/markdown.ts";
import { CHART } from "./chart.ts";

const README = "config/helm/egress-nat/README.md";

/** Of the marks between which the table stands. */
const TABLE = "values.yaml, by npm run generate";

/** How the comments begin that helm-docs reads. */
const DESCRIPTION = "-- ";
const DEFAULT = "@default -- ";

/** One value that a user can set. */
export interface ValueRow {
  readonly path: string;
  /** In Markdown. */
  readonly standard: string;
  /** Empty where values.yaml has none. */
  readonly description: string;
}

const read = (name: string) => readFile(join(CHART, name), "utf8");

/** The chart's README with the table of its values. */
export async function chartReadme(): Promise<readonly GeneratedFile[]> {
  const [readme, values] = await Promise.all([read("README.md"), read("values.yaml")]);
  const rows = valuesIn(values).map(({ path, standard, description }) => [
    `\`${path}\``,
    standard,
    description,
  ]);
  const table = markdownTable([["value", "default", "meaning"], ...rows]);
  return [{ path: README, text: replaceBetweenMarks(readme, TABLE, table) }];
}

/**
 * The values that a file describes as helm-docs has it: by comments that begin with `# --`, a default that is not what
 * the file holds by `# @default --`, and a map with a description as one value.
 */
export function valuesIn(text: string): readonly ValueRow[] {
  return rowsOf(parseDocument(text).contents, "", text);
}

function rowsOf(node: Node | null, parent: string, text: string): readonly ValueRow[] {
  if (!isMap<Node, Node>(node)) return [];
  return node.items.flatMap(({ key, value }) => {
    if (!isScalar(key)) return [];
    const path = `${parent}${key.value}`;
    const { description, standard } = commentAbove(text, key.range?.[0] ?? 0);
    const isFolder = isMap(value) && value.items.length > 0 && description === "";
    if (isFolder) return rowsOf(value, `${path}.`, text);
    return [{ path, standard: standard ?? `\`${JSON.stringify(value)}\``, description }];
  });
}

/** @param offset of a key */
function commentAbove(text: string, offset: number): { description: string; standard?: string } {
  const lines = text.slice(0, offset).split("\n").slice(0, -1);
  const first = lines.findLastIndex((line) => !/^ *#/.test(line)) + 1;
  const whole = lines.slice(first).map((line) => line.replace(/^ *# ?/, ""));
  const begin = whole.findLastIndex((line) => line.startsWith(DESCRIPTION));
  if (begin === -1) return { description: "" };
  const comment = whole.slice(begin);
  const standard = comment.find((line) => line.startsWith(DEFAULT));
  const description = comment.filter((line) => line !== standard).join(" ");
  return {
    description: description.slice(DESCRIPTION.length),
    ...(standard !== undefined && { standard: standard.slice(DEFAULT.length) }),
  };
}
