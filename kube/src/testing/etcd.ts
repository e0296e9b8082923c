/** etcd behind the test's apiserver, by its JSON gateway: for what the API itself cannot do, or not in time. */
export class Etcd {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /**
   * Stores objects as the apiserver would, faster than through it. Each has a revision of its own: the apiserver
   * counts on that, who watches may have to go on after any of them.
   */
  async store<T extends object>(keyOf: (object: T) => string, objects: readonly T[]): Promise<void> {
    const remaining = objects.values();
    const worker = async () => {
      for (const object of remaining) {
        await this.#call("kv/put", { key: base64(keyOf(object)), value: base64(JSON.stringify(object)) });
      }
    };
    await Promise.all(Array.from({ length: 32 }, worker));
  }

  /** Deletes everything below a key that ends with a slash, at once, in one revision: nobody may be watching. */
  async deleteBelow(prefix: string): Promise<void> {
    // "0" follows "/" in ASCII.
    await this.#call("kv/deleterange", {
      key: base64(prefix),
      range_end: base64(prefix.replace(/\/$/, "0")),
    });
  }

  /** Forgets all history up to now. */
  async compact(): Promise<void> {
    const { header } = (await this.#call("kv/range", { key: base64("/") })) as {
      header: { revision: string };
    };
    await this.#call("kv/compaction", { revision: header.revision, physical: true });
  }

  async #call(path: string, body: object): Promise<unknown> {
    const response = await fetch(`${this.#url}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd: ${path}: ${await response.text()}`);
    return response.json();
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
