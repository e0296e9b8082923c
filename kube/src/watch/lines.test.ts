import fc from "fast-check";
import { expect, test } from "vitest";
import { lines } from "./lines.ts";

async function* chunksOf(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

async function collect(chunks: AsyncIterable<Buffer>): Promise<string[]> {
  const texts: string[] = [];
  for await (const line of lines(chunks)) texts.push(line);
  return texts;
}

test("lines come out whole, wherever the network cuts them", async () => {
  const line = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !text.includes("\n"));
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 50 }), async (texts, size) => {
      const stream = chunksOf(texts.map((text) => `${text}\n`).join(""), size);
      expect(await collect(stream)).toEqual(texts);
    }),
  );
});

test("a line that was cut off by the end of the connection is not told", async () => {
  expect(await collect(chunksOf('{"a":1}\n{"b"', 3))).toEqual(['{"a":1}']);
});
