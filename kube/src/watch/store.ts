import { isDeepStrictEqual } from "node:util";
import { type KubeObject, objectKey } from "../objects/resource.ts";

export interface Change<T> {
  readonly type: "added" | "updated" | "deleted";
  readonly key: string;
  /** The object as it is now; of a deleted one, as it was last seen. */
  readonly object: T;
  readonly previous?: T;
}

export type ChangeListener<T> = (change: Change<T>) => void;

interface Index<T> {
  readonly valuesOf: (object: T) => readonly string[];
  readonly keysByValue: Map<string, Set<string>>;
}

/**
 * The objects of one collection, as last seen, by key, with indexes and change notices.
 *
 * It goes by content, because version numbers are given out again when etcd is restored from a backup. Whoever trims
 * objects must keep `metadata.uid`: it tells that a name was used again.
 */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Index<T>>();
  readonly #listeners = new Set<ChangeListener<T>>();

  get size(): number {
    return this.#objects.size;
  }

  /** @param key "namespace/name", or "name" for an object of the whole cluster */
  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  keys(): string[] {
    return [...this.#objects.keys()];
  }

  /**
   * Adds an index over the objects that are here and those that come.
   *
   * @param valuesOf under which values an object is to be found; none leaves it out
   */
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void {
    if (this.#indexes.has(name)) throw new TypeError(`index ${name} exists already`);
    const index = { valuesOf, keysByValue: new Map<string, Set<string>>() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) enter(index, key, object);
  }

  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    if (!index) throw new TypeError(`there is no index ${name}`);
    const keys = index.keysByValue.get(value) ?? [];
    return [...keys].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /**
   * Calls back after each change, when all of it can be seen in the store.
   *
   * @returns what ends it
   */
  onChange(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Adds an object or replaces its former version. */
  put(object: T): void {
    this.#notify(this.#put(object));
  }

  remove(key: string): void {
    this.#notify(this.#remove(key));
  }

  /**
   * Makes these the store's objects: what a new list says after any number of missed events. Only the differences
   * are told, deletions first: what is gone may have held what something new wants, such as an address.
   */
  replaceAll(objects: Iterable<T>): void {
    const incoming = new Map<string, T>();
    for (const object of objects) incoming.set(objectKey(object), object);
    const gone = this.keys().filter((key) => !incoming.has(key));
    const deletions = gone.flatMap((key) => this.#remove(key));
    const changes = [...incoming.values()].flatMap((object) => this.#put(object));
    this.#notify([...deletions, ...changes]);
  }

  #put(object: T): Change<T>[] {
    const key = objectKey(object);
    const previous = this.#objects.get(key);
    if (!previous) {
      this.#set(key, object);
      return [{ type: "added", key, object }];
    }
    if (previous === object) return [];
    if (previous.metadata.uid !== object.metadata.uid) {
      // The name was used again. Whoever holds something for the former object has to let go of it.
      return [...this.#remove(key), ...this.#put(object)];
    }
    this.#unset(key, previous);
    this.#set(key, object);
    return isSameContent(previous, object) ? [] : [{ type: "updated", key, object, previous }];
  }

  #remove(key: string): Change<T>[] {
    const object = this.#objects.get(key);
    if (!object) return [];
    this.#unset(key, object);
    this.#objects.delete(key);
    return [{ type: "deleted", key, object }];
  }

  #set(key: string, object: T): void {
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) enter(index, key, object);
  }

  #unset(key: string, object: T): void {
    for (const index of this.#indexes.values()) leave(index, key, object);
  }

  #notify(changes: readonly Change<T>[]): void {
    for (const change of changes) {
      for (const listener of this.#listeners) {
        try {
          listener(change);
        } catch (error) {
          // A listener's bug is the program's: it must neither be taken for the apiserver's nor stop the others.
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    }
  }
}

/** Whether two versions differ in nothing that is kept: most writes to most objects concern others. */
function isSameContent(a: KubeObject, b: KubeObject): boolean {
  return isDeepStrictEqual(
    { ...a, metadata: { ...a.metadata, resourceVersion: undefined } },
    { ...b, metadata: { ...b.metadata, resourceVersion: undefined } },
  );
}

function enter<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const keys = index.keysByValue.get(value);
    if (keys) keys.add(key);
    else index.keysByValue.set(value, new Set([key]));
  }
}

function leave<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const keys = index.keysByValue.get(value);
    keys?.delete(key);
    if (keys?.size === 0) index.keysByValue.delete(value);
  }
}
