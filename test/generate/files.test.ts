import { expect, test } from "vitest";
import { outdatedFiles } from "./files.ts";

test("the generated files are what `npm run generate` would write", async () => {
  expect((await outdatedFiles()).map(({ path }) => path)).toEqual([]);
});
