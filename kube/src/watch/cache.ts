import { type KubeObject, objectKey } from "../objects/resource.ts";
import { Reflector, type ReflectorOptions, type ReflectorState } from "./reflector.ts";
import { type ChangeListener, Store } from "./store.ts";

export interface CacheOptions<T extends KubeObject> extends Omit<ReflectorOptions<T>, "store"> {
  /** The resource's plural if it is absent. */
  readonly name?: string;
  /** Under which values an object is to be found, by the name of the index. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
}

/** One collection of the API as a program sees it: a reflector with a store of its own, to read from. */
export class Cache<T extends KubeObject> extends Reflector<T> {
  readonly name: string;
  readonly store: Store<T>;

  constructor({ name, indexes = {}, ...options }: CacheOptions<T>) {
    const store = new Store<T>();
    for (const [index, valuesOf] of Object.entries(indexes)) store.addIndex(index, valuesOf);
    super({ ...options, store });
    this.name = name ?? options.resource.plural;
    this.store = store;
  }

  /** Calls back after each change, when all of it can be seen in the store. @returns what ends it */
  onChange(listener: ChangeListener<T>): () => void {
    return this.store.onChange(listener);
  }

  /**
   * Takes the answer to a write of this program: it is the very next version of the object, and until the watch tells of
   * that, each write of what is in the store would be a conflict.
   *
   * @param resourceVersion of what was written to: where the watch has told of another one meanwhile, it has the say
   */
  learn(answer: T, resourceVersion: string | undefined): void {
    if (this.store.get(objectKey(answer))?.metadata.resourceVersion === resourceVersion)
      this.store.put(answer);
  }
}

/** A cache of whatever objects. */
type AnyCache = Pick<Cache<KubeObject>, "name" | "state" | "whenSynced" | "run">;

/** Caches that run together, and that a program waits for before it decides anything. */
export class CacheSet {
  readonly #caches: readonly AnyCache[];

  constructor(caches: readonly AnyCache[]) {
    this.#caches = caches;
  }

  /** By the caches' names. */
  get states(): Readonly<Record<string, ReflectorState>> {
    return Object.fromEntries(this.#caches.map(({ name, state }) => [name, state]));
  }

  /** Names of those that have held no complete list yet. */
  get unsynced(): readonly string[] {
    return this.#caches.flatMap(({ name, state }) => (state.synced ? [] : [name]));
  }

  /** Resolves once each has held a complete list. @throws the signal's reason */
  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#caches.map((cache) => cache.whenSynced(signal)));
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#caches.map((cache) => cache.run(signal)));
  }
}
