import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../docs/markdown.ts";
import { NIGHTLY_STAGES } from "./stages.ts";

test("docs/testing.md has all stages of the night, in their order", () => {
  const document = readFileSync(join(ROOT, "docs/testing.md"), "utf8");
  const table = document.match(/^### At night\n([\s\S]*?)^#/m)?.[1] ?? "";
  const named = [...table.matchAll(/^\| `(.+?)`/gm)].map(([, name]) => name);
  expect(named).toEqual(NIGHTLY_STAGES.flat().map(({ name }) => name));
});
