import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { generatedFiles } from "./files.ts";

/** Client-side `kubectl apply` keeps the whole object in one annotation, and all annotations share 256 KiB. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

describe("the generated definitions", () => {
  test("are small enough for client-side kubectl apply", async () => {
    const definitions = (await generatedFiles()).filter(({ path }) => path.endsWith(".yaml"));
    const sizes = definitions.map(({ text }) => JSON.stringify(parse(text)).length);
    expect(Math.max(...sizes)).toBeLessThan(MAX_ANNOTATIONS_BYTES);
  });
});
