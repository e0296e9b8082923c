import type { Logger, ParentLogger } from "../logger.ts";
import type { KubeObject } from "../objects/resource.ts";
import type { Cache } from "../watch/cache.ts";
import type { Change } from "../watch/store.ts";
import { type Outcome, WorkQueue, type WorkQueueOptions } from "./work-queue.ts";

export interface ControllerOptions extends Omit<WorkQueueOptions, "onFailure"> {
  /** What keys are of: in the log it names the key. */
  readonly name: string;
  readonly logger: ParentLogger;
}

/** One look at one key. */
export interface ReconcileContext {
  readonly key: string;
  /** Each line has the key, and an id that all lines of this reconcile have. */
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** What a controller does. @typeParam S what is decided by: plain data */
export interface Reconciler<S> {
  /** Looks at what there is now, whatever the change was that asked for it. */
  readonly gather: (key: string) => S;
  /** Decides and applies. @throws what another try may mend: it comes after a growing delay */
  readonly reconcile: (snapshot: S, context: ReconcileContext) => Promise<Outcome>;
}

/** Keys that have to be reconciled, and how: the queue, its log and the id of each reconcile. */
export class Controller {
  readonly name: string;
  readonly #logger: ParentLogger;
  readonly #queue: WorkQueue;
  /** What begins to follow each cache that is watched, and returns what ends it. */
  readonly #watches: (() => () => void)[] = [];

  constructor({ name, logger, ...queue }: ControllerOptions) {
    this.name = name;
    this.#logger = logger;
    this.#queue = new WorkQueue({
      ...queue,
      onFailure: ({ key, id: reconcileId, error: err, failures, retryAfterMs }) =>
        logger.warn(
          { [name]: key, reconcileId, err, failures, retryAfterMs },
          "reconcile failed, trying again",
        ),
    });
  }

  /** Keys whose turn has come but that nobody works on yet. */
  get depth(): number {
    return this.#queue.depth;
  }

  add(key: string): void {
    this.#queue.add(key);
  }

  /**
   * Makes each change of a cache's objects a reason to reconcile, while this runs: who does not lead would only gather keys.
   *
   * @param keysOf what is to be reconciled because of a change
   * @param afterMs how long to wait, because more such changes may come; not at all if it is absent
   */
  watch<T extends KubeObject>(
    cache: Pick<Cache<T>, "onChange">,
    keysOf: (change: Change<T>) => Iterable<string>,
    afterMs?: number,
  ): void {
    this.#follow(cache, keysOf, (key) =>
      afterMs === undefined ? this.#queue.add(key) : this.#queue.addAfter(key, afterMs),
    );
  }

  /** As {@link watch}, of what to reconcile changes itself, also where it fails: that is no reason to try again sooner. */
  watchOwn<T extends KubeObject>(
    cache: Pick<Cache<T>, "onChange">,
    keysOf: (change: Change<T>) => Iterable<string>,
    afterMs: number,
  ): void {
    this.#follow(cache, keysOf, (key) => this.#queue.remind(key, afterMs));
  }

  /**
   * Reconciles until the signal is aborted, and then ends when what was begun has ended. What there is already has to be
   * added in the same turn.
   */
  run<S>({ gather, reconcile }: Reconciler<S>, signal: AbortSignal): Promise<void> {
    for (const follow of this.#watches) signal.addEventListener("abort", follow(), { once: true });
    return this.#queue.run((key, stop, reconcileId) => {
      const logger = this.#logger.child({ [this.name]: key, reconcileId });
      return reconcile(gather(key), { key, logger, signal: stop });
    }, signal);
  }

  #follow<T extends KubeObject>(
    cache: Pick<Cache<T>, "onChange">,
    keysOf: (change: Change<T>) => Iterable<string>,
    enqueue: (key: string) => void,
  ): void {
    this.#watches.push(() =>
      cache.onChange((change) => {
        for (const key of keysOf(change)) enqueue(key);
      }),
    );
  }
}
