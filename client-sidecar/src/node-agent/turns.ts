/** In a row. What is hurried without end must not keep the rest from being done. */
const MOST_OVERTAKEN = 3;

/** Why work that gives way has ended. */
export class Overtaken extends Error {}

/** Work on one thing at a time, in the order in which it was asked for; work on different things at the same time. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #givingWay = new Map<string, AbortController>();
  /** How often in a row work that gives way was overtaken. */
  readonly #overtaken = new Map<string, number>();

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

  /** As {@link take}, soon: work that gives way is overtaken. */
  hurry<T>(key: string, work: () => Promise<T>): Promise<T> {
    this.#givingWay.get(key)?.abort(new Overtaken());
    return this.take(key, work);
  }

  /**
   * As {@link take}, for work that gives way to what is hurried.
   *
   * @param work throws the reason of the signal where it ends because of that
   * @returns undefined where it was overtaken
   */
  giveWay<T>(key: string, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const overtaken = this.#overtaken.get(key) ?? 0;
    const control = new AbortController();
    if (overtaken < MOST_OVERTAKEN) this.#givingWay.set(key, control);
    return this.take(key, async () => {
      try {
        const result = await work(control.signal);
        this.#overtaken.delete(key);
        return result;
      } catch (err) {
        if (!(err instanceof Overtaken)) throw err;
        this.#overtaken.set(key, overtaken + 1);
        return undefined;
      } finally {
        if (this.#givingWay.get(key) === control) this.#givingWay.delete(key);
      }
    });
  }

  /** Forgets all keys but these. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this.#overtaken.keys()) if (!keys.has(key)) this.#overtaken.delete(key);
  }
}
