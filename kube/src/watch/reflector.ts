import { z } from "zod";
import { hasCode, KubeError, retryableError } from "../error.ts";
import type { Logger } from "../logger.ts";
import { type KubeObject, objectKey, type Resource, resourcePath } from "../objects/resource.ts";
import { abortable } from "../timing/abortable.ts";
import { Backoff } from "../timing/backoff.ts";
import { pause } from "../timing/clock.ts";
import type { Transport } from "../transport/transport.ts";
import { type CollectionRequest, listObjects, presentVersion } from "./list.ts";
import { failureOf, type ReflectorEvent, type RelistReason } from "./reflector-event.ts";
import type { Store } from "./store.ts";
import { type WatchEvent, watchObjects } from "./watch.ts";

export interface ReflectorState {
  readonly phase: "stopped" | "listing" | "watching" | "waiting" | "unserved";
  /** Whether the store has held a complete list at least once. */
  readonly synced: boolean;
  readonly resourceVersion: string | undefined;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly transport: Transport;
  readonly resource: Resource;
  /** All namespaces if it is absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Asks the apiserver for the metadata of the objects alone: for large objects of which nothing else is read. */
  readonly metadataOnly?: boolean | undefined;
  /** An API server that does not serve the resource has none of it: it may come with its next version. */
  readonly mayBeUnserved?: boolean | undefined;
  /**
   * Checks an object and keeps of it what is needed: memory is this function's result times the number of objects.
   * It must keep name, namespace, uid and resourceVersion. `apiVersion` and `kind` are there, also in lists.
   */
  readonly parse: (raw: unknown) => T;
  readonly store: Store<T>;
  readonly logger: Logger;
  readonly onEvent?: (event: ReflectorEvent) => void;
  /**
   * The longest silence of a watch, in milliseconds; 75 s if it is absent. The apiserver sends a bookmark each
   * minute: below that healthy watches are cut off.
   */
  readonly idleTimeoutMs?: number;
}

const DEFAULT_IDLE_TIMEOUT_MS = 75_000;

/** API servers are seldom replaced by ones that serve more. */
const UNSERVED_RECHECK_MS = 300_000;

const BACKOFF = { baseMs: 200, maxMs: 15_000 };

/** A watch that ends in good order sooner than this, without an event, is not one. */
const SHORTEST_WATCH_MS = 1_000;

const Raw = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string().optional(),
    uid: z.string().optional(),
    resourceVersion: z.string().optional(),
  }),
});

const Bookmark = z.object({ metadata: z.object({ resourceVersion: z.string() }) });

/**
 * Keeps a store equal to a collection of the API: lists it, then watches it for as long as it runs.
 *
 * A broken watch goes on where it was; only when the apiserver no longer knows that place, or refuses, does it list
 * again, and then the store tells the differences. Nothing is deleted from the store because something failed.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #collection: CollectionRequest;
  readonly #backoff = new Backoff(BACKOFF);
  readonly #firstSync = Promise.withResolvers<void>();
  #phase: ReflectorState["phase"] = "stopped";
  #synced = false;
  #resourceVersion: string | undefined;
  #relistReason: RelistReason = "start";
  /** Whether etcd may have been restored since the last watch: nothing came from it, or the apiserver was away. */
  #mayBeRewound = false;
  /** From a restore of etcd to the next list: version numbers are given out again, to other content. */
  #isRewound = false;

  constructor(options: ReflectorOptions<T>) {
    const { transport, resource, namespace, labelSelector, fieldSelector, metadataOnly } = options;
    const path = resourcePath(resource, { namespace });
    this.#options = options;
    this.#collection = { transport, path, query: { labelSelector, fieldSelector }, metadataOnly };
  }

  get state(): ReflectorState {
    return {
      phase: this.#phase,
      synced: this.#synced,
      resourceVersion: this.#resourceVersion,
    };
  }

  /** Resolves once the store holds a complete list. @throws the signal's reason */
  async whenSynced(signal?: AbortSignal): Promise<void> {
    await (signal ? abortable(this.#firstSync.promise, signal) : this.#firstSync.promise);
  }

  /** Runs until the signal is aborted. No error ends it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#resourceVersion === undefined) await this.#listIfServed(signal);
        else if (this.#mayBeRewound) await this.#compareWithNow(this.#resourceVersion, signal);
        else await this.#watch(this.#resourceVersion, signal);
      } catch (error) {
        if (signal.aborted) break;
        await this.#recover(error, signal);
      }
    }
    this.#phase = "stopped";
  }

  async #listIfServed(signal: AbortSignal): Promise<void> {
    try {
      await this.#list(signal);
    } catch (error) {
      if (!this.#options.mayBeUnserved || !hasCode(error, "NotFound")) throw error;
      this.#options.store.replaceAll([]);
      this.#isListed();
      this.#phase = "unserved";
      await pause(UNSERVED_RECHECK_MS, signal);
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { store, logger, resource } = this.#options;
    this.#phase = "listing";
    this.#tell({ type: "relist", reason: this.#relistReason });
    const startedAt = performance.now();
    const convert = (raw: unknown) => this.#convert(raw);
    const { items, resourceVersion } = await listObjects({ ...this.#collection, convert, signal });
    store.replaceAll(items);
    this.#resourceVersion = resourceVersion;
    this.#isListed();
    const durationMs = Math.round(performance.now() - startedAt);
    logger.debug({ kind: resource.kind, objects: store.size, durationMs }, "listed");
    this.#tell({ type: "synced", objects: store.size, durationMs });
  }

  #isListed(): void {
    this.#isRewound = false;
    this.#mayBeRewound = false;
    this.#synced = true;
    this.#firstSync.resolve();
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { idleTimeoutMs = DEFAULT_IDLE_TIMEOUT_MS } = this.#options;
    this.#phase = "waiting";
    const startedAt = performance.now();
    let events = 0;
    const stream = await watchObjects({ ...this.#collection, resourceVersion, idleTimeoutMs, signal });
    this.#phase = "watching";
    this.#tell({ type: "watching", resourceVersion });
    for await (const event of stream) {
      events += 1;
      // Not after a list: one that is followed by a watch that fails at once would go round without a pause.
      this.#backoff.reset();
      this.#take(event);
    }
    if (events === 0 && performance.now() - startedAt < SHORTEST_WATCH_MS) {
      const message = `watch of ${this.#collection.path}: it ended as soon as it had begun`;
      throw retryableError("Unreachable", message);
    }
    this.#tell({ type: "ended" });
  }

  /**
   * Lists again if the API is at an earlier moment than the watch: a watch from the future carries nothing, not even an
   * error, until that moment has come again. Then it goes on as if nothing had happened, so this has to come first: before
   * the first watch of an apiserver that was away, as it is while etcd is restored. A watch that only breaks, or ends in
   * good order, begins again without it.
   *
   * @see https://kep.k8s.io/5504 resourceVersions are decimal numbers that can be compared
   */
  async #compareWithNow(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { resource, logger, fieldSelector } = this.#options;
    const now = await presentVersion({ ...this.#collection, query: { fieldSelector }, signal });
    this.#mayBeRewound = false;
    if (Number(now) >= Number(resourceVersion)) return;
    this.#isRewound = true;
    this.#relist("rewound");
    this.#tell({ type: "rewound", resourceVersion: now });
    logger.warn(
      { kind: resource.kind, resourceVersion, now },
      "the API went back in time, as after a restore of etcd: listing again",
    );
  }

  #take(event: WatchEvent): void {
    const { store } = this.#options;
    if (event.type === "BOOKMARK") {
      const { resourceVersion } = Bookmark.parse(event.object).metadata;
      this.#resourceVersion = resourceVersion;
      this.#tell({ type: "bookmark", resourceVersion });
      return;
    }
    const { metadata } = Raw.parse(event.object);
    if (event.type === "DELETED") {
      store.remove(objectKey({ metadata }));
    } else {
      const object = this.#convert(event.object);
      if (object) store.put(object);
    }
    this.#resourceVersion = metadata.resourceVersion ?? this.#resourceVersion;
  }

  /** The object to keep: parsed, or the version that is already here where that is the same or the new one is invalid. */
  #convert(raw: unknown): T | undefined {
    const { store, parse, resource, logger } = this.#options;
    const { metadata } = Raw.parse(raw);
    const key = objectKey({ metadata });
    const known = store.get(key);
    const isKnown = known?.metadata.uid === metadata.uid;
    const isSameVersion = isKnown && known?.metadata.resourceVersion === metadata.resourceVersion;
    if (isSameVersion && !this.#isRewound) return known;
    try {
      return parse({ ...(raw as object), apiVersion: resource.apiVersion, kind: resource.kind });
    } catch (error) {
      logger.warn({ kind: resource.kind, key, err: error }, "cannot understand an object, ignoring it");
      this.#tell({ type: "invalid", key, error });
      return isKnown ? known : undefined;
    }
  }

  /** Decides, after an error, from where to go on, and waits before it does. */
  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    const { logger, resource } = this.#options;
    const { kind } = resource;
    const isWatching = this.#phase === "watching";
    const resourceVersion = this.#resourceVersion;
    const failure = failureOf(error, isWatching);
    if (failure.type === "expired" || failure.type === "refused") this.#relist(failure.type);
    this.#tell(failure);
    if (failure.type === "idle") {
      // Should the apiserver be gone, the next attempt says so.
      logger.debug({ kind }, "the watch was silent, starting it again");
      this.#mayBeRewound = true;
      this.#phase = "waiting";
      return;
    }
    if (failure.type === "expired") {
      logger.info({ kind, resourceVersion }, "watch has expired, listing again");
      if (this.#backoff.failures === 0) {
        this.#backoff.next();
        return;
      }
    }
    const isBusy = error instanceof KubeError && error.status === 429;
    if (failure.type === "disconnected" && !isWatching && !isBusy) this.#mayBeRewound = true;
    const delayMs = this.#backoff.next(error instanceof KubeError ? error.retryAfterMs : 0);
    const { failures } = this.#backoff;
    // Each apiserver restart breaks every watch once: that is nothing to warn of.
    const level = failures > 1 ? "warn" : "info";
    logger[level]({ kind, err: error, failures, delayMs }, "cannot list or watch, trying again");
    this.#phase = "waiting";
    this.#tell({ type: "backoff", delayMs, failures });
    await pause(delayMs, signal);
  }

  #relist(reason: RelistReason): void {
    this.#resourceVersion = undefined;
    this.#relistReason = reason;
  }

  #tell(event: ReflectorEvent): void {
    this.#options.onEvent?.(event);
  }
}
