/** Work on one thing at a time, in the order in which it was asked for; work on different things at the same time. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Does the work when all work on the same thing that was asked for earlier has ended, well or not. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const current = before.then(work, work);
    this.#last.set(key, current);
    try {
      return await current;
    } finally {
      if (this.#last.get(key) === current) this.#last.delete(key);
    }
  }
}
