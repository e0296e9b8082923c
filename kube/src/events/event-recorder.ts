import { randomBytes } from "node:crypto";
import { type Desired, ResourceClient } from "../apply/resource-client.ts";
import { hasCode, ifFound, KubeError } from "../error.ts";
import type { Logger } from "../logger.ts";
import { type KubeObject, namespacedResource, type Resource } from "../objects/resource.ts";
import { Backoff } from "../timing/backoff.ts";
import { type Clock, pause, systemClock } from "../timing/clock.ts";
import { microTime } from "../timing/time.ts";
import type { Transport } from "../transport/transport.ts";
import { EventBudget } from "./event-budget.ts";

export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
}

/** @returns what an event about this object names it by */
export function regarding(resource: Resource, { metadata }: KubeObject): Regarding {
  const { name, namespace, uid } = metadata;
  return { apiVersion: resource.apiVersion, kind: resource.kind, name, namespace, uid };
}

export interface RecordedEvent {
  readonly regarding: Regarding;
  readonly type: "Normal" | "Warning";
  /** Why, in one word, for machines: "GatewayLost". */
  readonly reason: string;
  /** What was being done or was done, in one word: "Reconcile". */
  readonly action: string;
  /** For people. At most 1024 bytes are kept. */
  readonly message: string;
}

export interface EventRecorderOptions {
  readonly transport: Transport;
  /** The program, qualified: "egress-nat.example.com/operator". */
  readonly component: string;
  /** Which one of them: the pod's name. */
  readonly instance: string;
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** One event that may happen again: a series, once it did. */
interface Series {
  readonly namespace: string;
  readonly name: string;
  readonly event: RecordedEvent;
  readonly firstSeenAt: string;
  count: number;
  writtenCount: number;
  lastSeenAt: string;
  lastSeen: number;
}

const EVENT = namespacedResource("events.k8s.io/v1", "events", "Event");

/** As in client-go: a series that was quiet for this long is over; the next such event starts a new one. */
const SERIES_ENDS_AFTER_MS = 6 * 60_000;

/** More than this would only describe an outage of the apiserver, line by line. */
const MAX_PENDING_WRITES = 1_000;

const MAX_ATTEMPTS = 12;
const BACKOFF = { baseMs: 500, maxMs: 10_000 };
const CLOSE_TIMEOUT_MS = 1_000;

const MAX_NOTE_BYTES = 1024;
const MAX_INSTANCE_LENGTH = 128;
const MAX_NAME_LENGTH = 253;

/**
 * Records events about objects (events.k8s.io/v1), for `kubectl describe` and `kubectl events`.
 *
 * As in client-go an event that happens again becomes a series: its count is written when it happens the second
 * time, and then every few minutes while it goes on. And an object about which too much is said is muted for a while.
 * Recording never fails and never waits; what cannot be written is logged.
 *
 * @see https://github.com/kubernetes/enhancements/tree/master/keps/sig-instrumentation/383-new-event-api-ga-graduation
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #client: ResourceClient<KubeObject>;
  readonly #clock: Clock;
  readonly #budget: EventBudget;
  readonly #series = new Map<string, Series>();
  readonly #closing = new AbortController();
  #writes: Promise<void> = Promise.resolve();
  #pendingWrites = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#client = new ResourceClient(options.transport, EVENT, (raw) => raw as KubeObject);
    this.#clock = options.clock ?? systemClock;
    this.#budget = new EventBudget(this.#clock);
  }

  record(event: RecordedEvent): void {
    const { logger } = this.#options;
    const key = seriesKey(event);
    const series = this.#series.get(key);
    if (series) {
      series.count += 1;
      series.lastSeenAt = microTime();
      series.lastSeen = this.#clock.now();
      if (series.count === 2) this.#enqueue(series);
      return;
    }
    const { regarding, reason, message } = event;
    if (!this.#budget.spend(seriesKey({ regarding }))) {
      logger.debug(
        { regarding, reason, note: message },
        "too many events about this object, event not recorded",
      );
      return;
    }
    const started = this.#start(event);
    this.#series.set(key, started);
    this.#enqueue(started);
    this.#scheduleSweep();
  }

  /** Writes what is pending, for a second at most. Nothing is recorded afterwards. */
  async close(): Promise<void> {
    this.#cancelSweep?.();
    for (const series of this.#series.values()) {
      if (series.count > series.writtenCount && series.writtenCount > 0) this.#enqueue(series);
    }
    const cancel = this.#clock.after(CLOSE_TIMEOUT_MS, () => this.#closing.abort());
    await this.#writes;
    cancel();
    this.#closing.abort();
  }

  #start(event: RecordedEvent): Series {
    const suffix = `.${randomBytes(8).toString("hex")}`;
    const at = microTime();
    return {
      // An object of the whole cluster has its events in "default", where kubectl looks for them.
      namespace: event.regarding.namespace || "default",
      name: event.regarding.name.slice(0, MAX_NAME_LENGTH - suffix.length) + suffix,
      event,
      firstSeenAt: at,
      count: 1,
      writtenCount: 0,
      lastSeenAt: at,
      lastSeen: this.#clock.now(),
    };
  }

  /** Writes one after the other: the second time of an event must not overtake the first. */
  #enqueue(series: Series): void {
    const { logger } = this.#options;
    if (this.#closing.signal.aborted) return;
    if (this.#pendingWrites >= MAX_PENDING_WRITES) {
      logger.warn({ event: series.event }, "too many events wait to be written, event dropped");
      return;
    }
    this.#pendingWrites += 1;
    this.#writes = this.#writes
      .then(() => this.#write(series))
      .catch((err: unknown) => logger.warn({ event: series.event, err }, "cannot write event"))
      .finally(() => {
        this.#pendingWrites -= 1;
      });
  }

  async #write(series: Series): Promise<void> {
    const backoff = new Backoff(BACKOFF);
    const { signal } = this.#closing;
    while (true) {
      try {
        const { count } = series;
        if (series.writtenCount === 0) await this.#create(series);
        else if (count > series.writtenCount) await this.#update(series);
        series.writtenCount = count;
        return;
      } catch (error) {
        const isTransient = error instanceof KubeError && error.retryable;
        if (!isTransient || backoff.failures >= MAX_ATTEMPTS) throw error;
        if (!(await pause(backoff.next(error.retryAfterMs), signal, this.#clock))) throw error;
      }
    }
  }

  async #create(series: Series): Promise<void> {
    try {
      await this.#client.create(this.#eventObject(series), { signal: this.#closing.signal });
    } catch (error) {
      // An attempt before this one was carried out, and only its answer was lost.
      if (!hasCode(error, "AlreadyExists")) throw error;
    }
  }

  async #update(series: Series): Promise<void> {
    const { signal } = this.#closing;
    const patched = await ifFound(this.#client.patch(series, { series: seriesStatus(series) }, { signal }));
    // Events live for an hour, a series may go on for days.
    if (patched === undefined) await this.#create(series);
  }

  #eventObject(series: Series): Desired<KubeObject> & Readonly<Record<string, unknown>> {
    const { component, instance } = this.#options;
    const { namespace, name, event, count, firstSeenAt } = series;
    return {
      metadata: { namespace, name },
      eventTime: firstSeenAt,
      type: event.type,
      reason: event.reason,
      action: event.action,
      note: truncate(event.message),
      regarding: event.regarding,
      reportingController: component,
      reportingInstance: instance.slice(0, MAX_INSTANCE_LENGTH),
      ...(count > 1 && { series: seriesStatus(series) }),
    };
  }

  #scheduleSweep(): void {
    this.#cancelSweep ??= this.#clock.after(SERIES_ENDS_AFTER_MS, () => this.#sweep());
  }

  /** Writes the counts that have grown, and forgets the series that are over. */
  #sweep(): void {
    const now = this.#clock.now();
    for (const [key, series] of this.#series) {
      if (series.count > series.writtenCount) this.#enqueue(series);
      if (now - series.lastSeen >= SERIES_ENDS_AFTER_MS) this.#series.delete(key);
    }
    this.#budget.forgetFull();
    this.#cancelSweep = undefined;
    if (this.#series.size > 0) this.#scheduleSweep();
  }
}

function seriesStatus(series: Series): { count: number; lastObservedTime: string } {
  return { count: series.count, lastObservedTime: series.lastSeenAt };
}

/** The note is part of it, unlike in client-go: a note cannot be changed, and an old one would speak for a new case. */
function seriesKey(event: Partial<RecordedEvent> & Pick<RecordedEvent, "regarding">): string {
  const { regarding, type, reason, action, message } = event;
  const { kind, namespace, name, uid } = regarding;
  return JSON.stringify([regarding.apiVersion, kind, namespace, name, uid, type, reason, action, message]);
}

function truncate(note: string): string {
  const bytes = Buffer.from(note);
  if (bytes.length <= MAX_NOTE_BYTES) return note;
  // A character cut in half decodes to U+FFFD: it goes as well.
  const head = bytes.subarray(0, MAX_NOTE_BYTES - 3).toString("utf8");
  return `${head.replace(/\uFFFD$/, "")}…`;
}
