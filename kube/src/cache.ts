import { Reflector, type ReflectorOptions, type ReflectorState } from "./reflector.ts";
import { type KubeObject, objectKey } from "./resource.ts";
import { type ChangeListener, Store } from "./store.ts";

export interface CacheOptions<T extends KubeObject> extends Omit<ReflectorOptions<T>, "store"> {
  /** The resource's plural if it is absent. */
  readonly name?: string;
  /** Under which values an object is to be found, by the name of the index. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
}

/** One collection of the API as a program sees it: a store to read from, and the reflector that keeps it up to date. */
export class Cache<T extends KubeObject> {
  readonly name: string;
  readonly store = new Store<T>();
  readonly #reflector: Reflector<T>;

  constructor({ name, indexes = {}, ...options }: CacheOptions<T>) {
    this.name = name ?? options.resource.plural;
    for (const [index, valuesOf] of Object.entries(indexes)) this.store.addIndex(index, valuesOf);
    this.#reflector = new Reflector({ ...options, store: this.store });
  }

  get state(): ReflectorState {
    return this.#reflector.state;
  }

  /** Calls back after each change, when all of it can be seen in the store. @returns what ends it */
  onChange(listener: ChangeListener<T>): () => void {
    return this.store.onChange(listener);
  }

  /**
   * Takes the answer to a write of this program for the very next version of the object. Until the watch tells of it, each
   * write of what is in the store would be a conflict.
   *
   * @param answer the object as it was written
   * @param resourceVersion of what was written to: where the watch has told of another one meanwhile, it has the say
   */
  learn(answer: T, resourceVersion: string | undefined): void {
    if (this.store.get(objectKey(answer))?.metadata.resourceVersion === resourceVersion)
      this.store.put(answer);
  }

  /** Resolves once the store holds a complete list. @throws the signal's reason */
  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#reflector.whenSynced(signal);
  }

  /** Runs until the signal is aborted. No error ends it. */
  run(signal: AbortSignal): Promise<void> {
    return this.#reflector.run(signal);
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
