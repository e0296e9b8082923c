const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Depth inside `{"items":[`: what opens from here is an item. */
const ITEMS_DEPTH = 2;

/**
 * Takes the JSON of a List apart while it arrives: hands out the text of one item at a time and keeps the rest.
 *
 * A list of 10,000 pods is a hundred megabytes of objects when parsed at once; one item is ten kilobytes. It works on
 * bytes: every byte of a UTF-8 sequence is above the characters that matter here.
 */
export class ListScanner {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #inItems = false;
  /** The last string in the List object itself, and whether a colon has made it the current key. */
  #text = "";
  #key: string | undefined;
  #itemParts: Buffer[] = [];
  #envelopeParts: Buffer[] = [];

  /** @returns the JSON texts of the items that this chunk completes */
  push(chunk: Buffer): string[] {
    const items: string[] = [];
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (this.#inString) {
        this.#insideString(byte);
        continue;
      }
      switch (byte) {
        case QUOTE:
          this.#inString = true;
          this.#text = "";
          break;
        case COLON:
          if (this.#depth === 1) this.#key = this.#text;
          break;
        case COMMA:
          if (this.#depth === 1) this.#key = undefined;
          break;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          this.#depth += 1;
          if (this.#inItems && this.#depth === ITEMS_DEPTH + 1) start = at;
          if (this.#depth === ITEMS_DEPTH && byte === OPEN_BRACKET && this.#key === "items") {
            this.#inItems = true;
            this.#envelopeParts.push(chunk.subarray(start, at + 1));
          }
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.#depth -= 1;
          if (this.#inItems && this.#depth === ITEMS_DEPTH) {
            this.#itemParts.push(chunk.subarray(start, at + 1));
            items.push(Buffer.concat(this.#itemParts).toString("utf8"));
            this.#itemParts = [];
          } else if (this.#inItems && this.#depth < ITEMS_DEPTH) {
            this.#inItems = false;
            start = at;
          }
          break;
      }
    }
    if (!this.#inItems) this.#envelopeParts.push(chunk.subarray(start));
    else if (this.#depth > ITEMS_DEPTH) this.#itemParts.push(chunk.subarray(start));
    return items;
  }

  /** @returns the JSON text of the List without its items, once all of it has been pushed */
  envelope(): string {
    return Buffer.concat(this.#envelopeParts).toString("utf8");
  }

  #insideString(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#inString = false;
    else if (this.#depth === 1) this.#text += String.fromCharCode(byte);
  }
}
