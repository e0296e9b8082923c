import { outdatedFiles } from "@egress-nat/tools/generate/files";
import { expect, test } from "vitest";
import { GENERATORS } from "./generators.ts";

test("the generated files are what `npm run generate` would write", async () => {
  expect((await outdatedFiles(GENERATORS)).map(({ path }) => path)).toEqual([]);
});
