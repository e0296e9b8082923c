import { z } from "zod";
import { type Clock, pause, systemClock } from "./clock.ts";
import { hasCode } from "./error.ts";
import type { Logger } from "./logger.ts";
import { microTime } from "./micro-time.ts";
import { apiVersion, type Resource, resourcePath } from "./resource.ts";
import type { Transport } from "./transport.ts";

export interface LeaderElectorOptions {
  readonly transport: Transport;
  /** Namespace and name of the Lease. */
  readonly namespace: string;
  readonly name: string;
  /** Unique among the candidates: the pod's name, as a rule. */
  readonly identity: string;
  readonly logger: Logger;
  /** For how long the others keep off after they saw the leader's last renewal; 15 s where it is absent. */
  readonly leaseDurationMs?: number;
  /** For how long the leader tries to renew before it gives up; 10 s where it is absent. */
  readonly renewDeadlineMs?: number;
  /** Between two attempts to acquire or to renew; 2 s where it is absent. */
  readonly retryPeriodMs?: number;
  readonly clock?: Clock;
}

export interface LeaderCallbacks {
  /**
   * Leads until the signal is aborted, and returns when everything it began has ended. To return sooner does not give
   * up the lead. An error ends the candidacy: the lease is released and `run` throws it.
   */
  readonly onLead: (signal: AbortSignal) => Promise<void>;
  /** Told when the lead was lost against our will, before `onLead` has ended. */
  readonly onLost?: () => void;
}

const LEASE: Resource = {
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  kind: "Lease",
  namespaced: true,
};

const Lease = z.object({
  metadata: z.looseObject({ resourceVersion: z.string() }),
  spec: z
    .object({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      acquireTime: z.string().nullish(),
      renewTime: z.string().nullish(),
      leaseTransitions: z.number().nullish(),
    })
    .default({}),
});
type Lease = z.infer<typeof Lease>;

/** How long the release at the end may take: a pod that is told to stop has little time. */
const RELEASE_TIMEOUT_MS = 2_000;

/**
 * One leader among several candidates, by a Lease, as client-go does it and together with candidates that use it.
 *
 * Whether a lease has expired is judged by when this process saw it change, not by the times in it: clocks of
 * different machines are not compared. There may still be no leader for a while, and, if a leader's process was frozen
 * for longer than the lease, two for as long as it takes it to notice: work under a lead has to bear that.
 *
 * @see https://pkg.go.dev/k8s.io/client-go/tools/leaderelection
 */
export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #clock: Clock;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  #observed: { readonly lease: Lease; readonly at: number } | undefined;
  #isLeader = false;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#leaseDurationMs = options.leaseDurationMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryPeriodMs = options.retryPeriodMs ?? 2_000;
    if (this.#leaseDurationMs <= this.#renewDeadlineMs || this.#renewDeadlineMs <= this.#retryPeriodMs) {
      throw new TypeError("leaseDurationMs must exceed renewDeadlineMs, and that retryPeriodMs");
    }
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  /** Who holds the lease, as last seen. */
  get leader(): string | undefined {
    return this.#observed?.lease.spec.holderIdentity || undefined;
  }

  /** Is a candidate until the signal is aborted; a lease that it then holds is released at once. */
  async run(callbacks: LeaderCallbacks, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const heldSince = await this.#acquire(signal);
      if (heldSince !== undefined) await this.#lead(heldSince, callbacks, signal);
    }
  }

  /** @returns when the lease was taken, by the local clock; undefined when the signal was aborted before */
  async #acquire(signal: AbortSignal): Promise<number | undefined> {
    while (!signal.aborted) {
      const at = this.#clock.now();
      if (await this.#attempt(this.#renewDeadlineMs)) return at;
      await pause(this.#jittered(), signal, this.#clock);
    }
    return undefined;
  }

  async #lead(heldSince: number, callbacks: LeaderCallbacks, signal: AbortSignal): Promise<void> {
    const { logger, identity, name } = this.#options;
    const lead = new AbortController();
    const ended = new AbortController();
    const abort = () => lead.abort(signal.reason);
    signal.addEventListener("abort", abort);
    if (signal.aborted) abort();

    this.#isLeader = true;
    logger.info({ lease: name, identity }, "leading");
    const work = leadUntil(callbacks, lead.signal);
    // The work goes on for a while after it was told to stop: the lease is kept until it has ended.
    void work.then(
      () => ended.abort(),
      () => ended.abort(),
    );
    const held = await this.#renew(heldSince, ended.signal);
    this.#isLeader = false;
    if (!held) {
      logger.error({ lease: name, identity }, "lost the lead");
      lead.abort(new DOMException("lost the lead", "AbortError"));
      callbacks.onLost?.();
    }
    try {
      await work;
    } finally {
      signal.removeEventListener("abort", abort);
      if (held) await this.#release();
    }
  }

  /** Renews until told that the work has ended. @returns whether the lease is still ours */
  async #renew(heldSince: number, ended: AbortSignal): Promise<boolean> {
    let renewedAt = heldSince;
    while (await pause(this.#jittered(), ended, this.#clock)) {
      const at = this.#clock.now();
      const remainingMs = this.#renewDeadlineMs - (at - renewedAt);
      // Half the deadline at most: where a connection has died, a second attempt gets a new one.
      const timeoutMs = Math.min(remainingMs, this.#renewDeadlineMs / 2);
      if (remainingMs > 0 && (await this.#attempt(timeoutMs))) renewedAt = at;
      else if (this.#clock.now() - renewedAt >= this.#renewDeadlineMs || this.#isHeldByOther()) return false;
    }
    return true;
  }

  #isHeldByOther(): boolean {
    return this.leader !== undefined && this.leader !== this.#options.identity;
  }

  /** Tries once to take or to renew the lease. @returns whether it is ours */
  async #attempt(timeoutMs: number): Promise<boolean> {
    const { logger, identity, name } = this.#options;
    try {
      const current = await this.#read(timeoutMs);
      if (current) this.#observe(current);
      if (current && !this.#mayTake(current)) return false;
      this.#observe(await this.#write(this.#claim(current), current, timeoutMs));
      return true;
    } catch (err) {
      // Conflict and AlreadyExists: another candidate was faster, the next read tells who.
      const level = hasCode(err, "Conflict") || hasCode(err, "AlreadyExists") ? "debug" : "warn";
      logger[level]({ lease: name, identity, err }, "cannot acquire or renew the lease");
      return false;
    }
  }

  #observe(lease: Lease): void {
    const seen = this.#observed;
    if (seen?.lease.metadata.resourceVersion === lease.metadata.resourceVersion) return;
    if (seen && seen.lease.spec.holderIdentity !== lease.spec.holderIdentity) {
      this.#options.logger.info({ leader: lease.spec.holderIdentity || undefined }, "leader changed");
    }
    this.#observed = { lease, at: this.#clock.now() };
  }

  #mayTake(lease: Lease): boolean {
    const { holderIdentity, leaseDurationSeconds } = lease.spec;
    if (!holderIdentity || holderIdentity === this.#options.identity) return true;
    const observedAt = this.#observed?.at ?? this.#clock.now();
    const durationMs = leaseDurationSeconds ? leaseDurationSeconds * 1000 : this.#leaseDurationMs;
    return observedAt + durationMs <= this.#clock.now();
  }

  #claim(current: Lease | undefined): Lease["spec"] {
    const { identity } = this.#options;
    const now = microTime();
    const isRenewal = current?.spec.holderIdentity === identity;
    const transitions = current?.spec.leaseTransitions ?? 0;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#leaseDurationMs / 1000),
      acquireTime: isRenewal ? (current.spec.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: isRenewal || !current ? transitions : transitions + 1,
    };
  }

  async #release(): Promise<void> {
    const { logger, identity, name } = this.#options;
    try {
      // Not as last seen: the answer to the last renewal may have been lost.
      const current = await this.#read(RELEASE_TIMEOUT_MS);
      if (current?.spec.holderIdentity !== identity) return;
      const now = microTime();
      const spec = {
        ...current.spec,
        holderIdentity: "",
        leaseDurationSeconds: 1,
        acquireTime: now,
        renewTime: now,
      };
      this.#observe(await this.#write(spec, current, RELEASE_TIMEOUT_MS));
      logger.info({ lease: name, identity }, "released the lead");
    } catch (err) {
      logger.warn({ lease: name, identity, err }, "cannot release the lead, it will expire");
    }
  }

  async #read(timeoutMs: number): Promise<Lease | undefined> {
    const { transport, namespace, name } = this.#options;
    try {
      return Lease.parse(
        await transport.request({ method: "GET", path: resourcePath(LEASE, { namespace, name }), timeoutMs }),
      );
    } catch (error) {
      if (hasCode(error, "NotFound")) return undefined;
      throw error;
    }
  }

  async #write(spec: Lease["spec"], current: Lease | undefined, timeoutMs: number): Promise<Lease> {
    const { transport, namespace, name } = this.#options;
    const metadata = current?.metadata ?? { namespace, name };
    const body = { apiVersion: apiVersion(LEASE), kind: LEASE.kind, metadata, spec };
    const written = current
      ? transport.request({ method: "PUT", path: resourcePath(LEASE, { namespace, name }), body, timeoutMs })
      : transport.request({ method: "POST", path: resourcePath(LEASE, { namespace }), body, timeoutMs });
    return Lease.parse(await written);
  }

  #jittered(): number {
    return this.#retryPeriodMs * (1 + Math.random() / 5);
  }
}

/** The work, and then the end of its signal: to return early does not give up the lead. */
async function leadUntil(callbacks: LeaderCallbacks, signal: AbortSignal): Promise<void> {
  await callbacks.onLead(signal);
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
}
