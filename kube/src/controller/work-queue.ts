import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { KubeError } from "../error.ts";
import { Backoff, type BackoffOptions } from "../timing/backoff.ts";
import { type Clock, systemClock } from "../timing/clock.ts";

/** What became of one piece of work. An error is thrown, and means: again, after a growing delay. */
export type Outcome =
  | { readonly type: "done" }
  /** All is well, but look again after a while. */
  | { readonly type: "requeue"; readonly afterMs: number }
  /** It has failed for a reason that no retry mends: it waits for a change, and looks again only where none would be seen. */
  | { readonly type: "stalled"; readonly afterMs: number | undefined };

export const done: Outcome = { type: "done" };

export function requeueAfter(afterMs: number): Outcome {
  return { type: "requeue", afterMs };
}

/**
 * Whoever can mend it has been told of it.
 *
 * @param afterMs when to look all the same, because no watch tells of the remedy
 */
export function stalled(afterMs?: number): Outcome {
  return { type: "stalled", afterMs };
}

/** @param id tells pieces of work apart, in the log */
export type Worker = (key: string, signal: AbortSignal, id: string) => Promise<Outcome>;

export interface WorkReport {
  readonly key: string;
  /** Whether the key waits for a change, for its time, or for another try. */
  readonly outcome: "done" | "requeue" | "error";
  readonly durationMs: number;
}

/** What the worker threw, and when the key's turn comes again. */
export interface WorkFailure {
  readonly key: string;
  readonly id: string;
  readonly error: unknown;
  /** In a row. */
  readonly failures: number;
  readonly retryAfterMs: number;
}

export interface WorkQueueOptions {
  readonly concurrency: number;
  /** The delays after failures of one key; they grow for each key by itself. */
  readonly backoff: BackoffOptions;
  readonly clock?: Clock;
  /** Told after each piece of work, for metrics. */
  readonly onReport?: (report: WorkReport) => void;
  /** Told after each that failed, for the log. */
  readonly onFailure?: (failure: WorkFailure) => void;
}

interface Appointment {
  readonly dueAt: number;
  /** Whether nothing but {@link WorkQueue.remind} asks for it. */
  readonly isReminder: boolean;
  readonly cancel: () => void;
}

/**
 * Keys that something has to be done about, each at most once, first come, first served. One key is never worked on
 * twice at a time: added meanwhile, it has its turn again afterwards. One that fails again and again holds up no other.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #clock: Clock;
  /** A Set keeps the order of its first insertions. */
  readonly #waiting = new Set<string>();
  readonly #active = new Set<string>();
  readonly #again = new Set<string>();
  readonly #appointments = new Map<string, Appointment>();
  readonly #backoffs = new Map<string, Backoff>();
  #begin: (() => void) | undefined;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Keys whose turn has come but that nobody works on yet. */
  get depth(): number {
    return this.#waiting.size + this.#again.size;
  }

  get active(): number {
    return this.#active.size;
  }

  add(key: string): void {
    if (this.#active.has(key)) {
      this.#again.add(key);
      return;
    }
    this.#waiting.add(key);
    this.#begin?.();
  }

  /** Adds a key after a delay, or sooner where it already waits for an earlier time. */
  addAfter(key: string, delayMs: number): void {
    this.#appoint(key, delayMs, false);
  }

  /** As {@link addAfter}, but no reason to try sooner what has failed: the failure may be what causes it. */
  remind(key: string, delayMs: number): void {
    if (!this.#backoffs.has(key) || this.#active.has(key)) this.#appoint(key, delayMs, true);
  }

  /**
   * Works until the signal is aborted, and then ends when the work that was begun has ended. Nothing is kept for another
   * run.
   */
  async run(worker: Worker, signal: AbortSignal): Promise<void> {
    if (this.#begin) throw new TypeError("the queue is running already");
    const running = new Set<Promise<void>>();
    this.#begin = () => {
      while (!signal.aborted && running.size < this.#options.concurrency) {
        const [key] = this.#waiting;
        if (key === undefined) return;
        this.#waiting.delete(key);
        this.#active.add(key);
        const work = this.#work(key, worker, signal)
          // A thousand keys that need nothing would else be one turn, and neither probes nor the lease would have theirs.
          .then(() => nextTurn())
          .finally(() => {
            running.delete(work);
            this.#leave(key);
          });
        running.add(work);
      }
    };
    this.#begin();
    if (!signal.aborted) await once(signal, "abort");
    await Promise.all(running);
    for (const { cancel } of this.#appointments.values()) cancel();
    for (const kept of [this.#appointments, this.#waiting, this.#backoffs]) kept.clear();
    this.#begin = undefined;
  }

  async #work(key: string, worker: Worker, signal: AbortSignal): Promise<void> {
    const id = randomUUID().slice(0, 8);
    const startedAt = this.#clock.now();
    const elapsed = () => this.#clock.now() - startedAt;
    try {
      const outcome = await worker(key, signal, id);
      this.#backoffs.delete(key);
      const afterMs = outcome.type === "done" ? undefined : outcome.afterMs;
      if (afterMs !== undefined) this.addAfter(key, afterMs);
      const next = afterMs === undefined ? "done" : "requeue";
      this.#options.onReport?.({ key, outcome: next, durationMs: elapsed() });
    } catch (error) {
      if (signal.aborted) return;
      const backoff = this.#backoffs.get(key) ?? new Backoff(this.#options.backoff);
      this.#backoffs.set(key, backoff);
      const retryAfterMs = backoff.next(error instanceof KubeError ? error.retryAfterMs : 0);
      const waiting = this.#appointments.get(key);
      if (waiting?.isReminder) {
        waiting.cancel();
        this.#appointments.delete(key);
      }
      this.addAfter(key, retryAfterMs);
      this.#options.onReport?.({ key, outcome: "error", durationMs: elapsed() });
      this.#options.onFailure?.({ key, id, error, failures: backoff.failures, retryAfterMs });
    }
  }

  #appoint(key: string, delayMs: number, isReminder: boolean): void {
    const dueAt = this.#clock.now() + delayMs;
    const existing = this.#appointments.get(key);
    const isOnlyReminder = isReminder && existing?.isReminder !== false;
    if (existing && existing.dueAt <= dueAt) {
      this.#appointments.set(key, { ...existing, isReminder: isOnlyReminder });
      return;
    }
    existing?.cancel();
    const cancel = this.#clock.after(delayMs, () => {
      const isStillReminder = this.#appointments.get(key)?.isReminder;
      this.#appointments.delete(key);
      // What it reminds of may be the beginning of a failure.
      if (isStillReminder && this.#active.has(key)) this.remind(key, delayMs);
      else this.add(key);
    });
    this.#appointments.set(key, { dueAt, cancel, isReminder: isOnlyReminder });
  }

  #leave(key: string): void {
    this.#active.delete(key);
    if (this.#again.delete(key)) this.add(key);
    else this.#begin?.();
  }
}
