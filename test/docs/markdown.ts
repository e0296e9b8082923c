import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** A code block of a document. */
export interface Fence {
  /** Of its language, such as `sh`. */
  readonly language: string;
  /** The heading above it, without its marks. */
  readonly heading: string;
  readonly code: string;
}

/** The code blocks of a document, in their order. @param document its path in the checkout */
export function fencesIn(document: string): Fence[] {
  const fences: Fence[] = [];
  let heading = "";
  const text = readFileSync(join(ROOT, document), "utf8");
  for (const [, title, language = "", code = ""] of text.matchAll(/^#+ (.+)$|^```(\w*)\n([\s\S]*?)^```$/gm)) {
    if (title === undefined) fences.push({ language, heading, code });
    else heading = title;
  }
  return fences;
}
