const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** What a byte outside of strings does to the depth. */
const [INTO, OUT_OF] = [1, 2];
const STEPS = new Uint8Array(256);
STEPS[OPEN_BRACE] = INTO;
STEPS[OPEN_BRACKET] = INTO;
STEPS[CLOSE_BRACE] = OUT_OF;
STEPS[CLOSE_BRACKET] = OUT_OF;

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
    let at = 0;
    while (at < chunk.length) {
      at = this.#inItems ? this.#scanItems(chunk, at, items) : this.#scanEnvelope(chunk, at);
    }
    return items;
  }

  /** @returns the JSON text of the List without its items, once all of it has been pushed */
  envelope(): string {
    return Buffer.concat(this.#envelopeParts).toString("utf8");
  }

  /**
   * Nearly all bytes of a list pass through here, mostly those of strings, often before anything is compiled: local
   * variables, and as little as can be for each byte.
   *
   * @returns where the array of items ends, or the chunk
   */
  #scanItems(chunk: Buffer, from: number, items: string[]): number {
    const { length } = chunk;
    let depth = this.#depth;
    let inString = this.#inString;
    let escaped = this.#escaped;
    let start = from;
    let at = from;
    while (at < length && depth >= ITEMS_DEPTH) {
      let byte = chunk[at] as number;
      if (!inString) {
        at += 1;
        const step = STEPS[byte];
        if (byte === QUOTE) inString = true;
        else if (step === INTO) {
          if (depth === ITEMS_DEPTH) start = at - 1;
          depth += 1;
        } else if (step === OUT_OF) {
          depth -= 1;
          if (depth === ITEMS_DEPTH) items.push(this.#endItem(chunk.subarray(start, at)));
        }
      } else if (escaped) {
        at += 1;
        escaped = false;
      } else {
        while (byte !== QUOTE && byte !== BACKSLASH && ++at < length) byte = chunk[at] as number;
        inString = byte !== QUOTE;
        escaped = byte === BACKSLASH;
        at += 1;
      }
    }
    if (depth > ITEMS_DEPTH) this.#itemParts.push(chunk.subarray(start));
    this.#inItems = depth >= ITEMS_DEPTH;
    this.#inString = inString;
    this.#escaped = escaped;
    this.#depth = Math.max(depth, ITEMS_DEPTH);
    // The bracket that ends the items belongs to the envelope.
    return this.#inItems ? length : at - 1;
  }

  #endItem(lastPart: Buffer): string {
    if (this.#itemParts.length === 0) return lastPart.toString("utf8");
    const text = Buffer.concat([...this.#itemParts, lastPart]).toString("utf8");
    this.#itemParts = [];
    return text;
  }

  /** @returns where the first item begins, or the chunk ends */
  #scanEnvelope(chunk: Buffer, from: number): number {
    let at = from;
    for (; at < chunk.length && !this.#inItems; at += 1) {
      const byte = chunk[at] as number;
      if (this.#inString) this.#insideString(byte);
      else if (byte === QUOTE) {
        this.#inString = true;
        this.#text = "";
      } else if (byte === COLON && this.#depth === 1) {
        this.#key = this.#text;
      } else if (byte === COMMA && this.#depth === 1) {
        this.#key = undefined;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        this.#depth += 1;
        this.#inItems = this.#depth === ITEMS_DEPTH && byte === OPEN_BRACKET && this.#key === "items";
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        this.#depth -= 1;
      }
    }
    this.#envelopeParts.push(chunk.subarray(from, at));
    return at;
  }

  #insideString(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#inString = false;
    else if (this.#depth === 1) this.#text += String.fromCharCode(byte);
  }
}
