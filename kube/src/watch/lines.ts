const NEWLINE = 0x0a;

/** The lines of a stream, as soon as each is complete. What follows the last newline is dropped: it was cut off. */
export async function* lines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string, void, undefined> {
  let parts: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      start = end + 1;
      if (line !== "") yield line;
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
}
