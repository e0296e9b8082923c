import { once } from "node:events";
import { z } from "zod";
import { hasCode, ifFound } from "../error.ts";
import type { Logger } from "../logger.ts";
import { LEASE_RESOURCE, resourcePath } from "../objects/resource.ts";
import { abortable } from "../timing/abortable.ts";
import { type Clock, pause, systemClock } from "../timing/clock.ts";
import { microTime } from "../timing/time.ts";
import type { RequestOptions, Transport } from "../transport/transport.ts";
import { Lead } from "./lead.ts";

export interface LeaderElectorOptions {
  /** With connections of its own, else writes that hang keep the lease from being renewed. */
  readonly transport: Transport;
  /** Namespace and name of the Lease. */
  readonly namespace: string;
  readonly name: string;
  /** Unique among the candidates: the pod's name, as a rule. */
  readonly identity: string;
  readonly logger: Logger;
  /** For how long the others keep off after they saw the leader's last renewal; 15 s if it is absent. */
  readonly leaseDurationMs?: number;
  /** How long a lead lasts without a renewal, by the leader's own clock; 10 s if it is absent. */
  readonly renewDeadlineMs?: number;
  /** Between two attempts to acquire or to renew; 2 s if it is absent. */
  readonly retryPeriodMs?: number;
  readonly clock?: Clock;
}

/** As client-go has them. */
const DEFAULTS = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
  clock: systemClock,
};

export interface LeaderCallbacks {
  /**
   * Leads until the signal is aborted, and returns when everything it began has ended. To return sooner does not give
   * up the lead. An error ends the candidacy: the lease is released and `run` throws it.
   */
  readonly onLead: (signal: AbortSignal) => Promise<void>;
  /** Told when the lead was lost against our will, before `onLead` has ended. */
  readonly onLost?: () => void;
}

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

type Limits = Pick<RequestOptions, "timeoutMs" | "signal">;

/** How long the release at the end may take: a pod that is told to stop has little time. */
const RELEASE: Limits = { timeoutMs: 2_000 };

/**
 * One leader among several candidates, by a Lease, as client-go does it and together with candidates that use it.
 *
 * Whether a lease has expired is judged by when this process saw it change, not by the times in it: clocks of
 * different machines are not compared. A lead ends before its lease does, by a timer that waits for no answer, and a
 * process that was frozen looks at its clock before it sends a write. What remains is a write that was under way when the
 * lead ended: work under a lead has to bear that.
 *
 * @see https://pkg.go.dev/k8s.io/client-go/tools/leaderelection
 */
export class LeaderElector {
  readonly #options: Required<LeaderElectorOptions>;
  #observed: { readonly lease: Lease; readonly at: number } | undefined;
  #current: Lead | undefined;

  constructor(options: LeaderElectorOptions) {
    this.#options = { ...DEFAULTS, ...options };
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = this.#options;
    if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs) {
      throw new TypeError("leaseDurationMs must exceed renewDeadlineMs, and that retryPeriodMs");
    }
  }

  get isLeader(): boolean {
    return this.#current?.isHeld ?? false;
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
      const at = this.#options.clock.now();
      if (await this.#attempt()) return at;
      await pause(this.#jittered(), signal, this.#options.clock);
    }
    return undefined;
  }

  async #lead(heldSince: number, callbacks: LeaderCallbacks, signal: AbortSignal): Promise<void> {
    const { logger, identity, name } = this.#options;
    const lead = new Lead(heldSince, this.#options.renewDeadlineMs, this.#options.clock);
    const ended = new AbortController();
    const lose = () => {
      logger.error({ lease: name, identity, err: lead.signal.reason }, "lost the lead");
      callbacks.onLost?.();
    };
    lead.signal.addEventListener("abort", lose);

    this.#current = lead;
    logger.info({ lease: name, identity }, "leading");
    // The work goes on for a while after it was told to stop: the lease is kept until it has ended.
    const renewals = this.#renew(lead, ended.signal);
    try {
      await leadUntil(callbacks, AbortSignal.any([signal, lead.signal]));
    } finally {
      ended.abort();
      await renewals;
      const isLost = !lead.isHeld;
      lead.signal.removeEventListener("abort", lose);
      lead.end("its work has ended");
      if (!isLost) await this.#release();
    }
  }

  /** Renews until the work has ended, or the lead has. */
  async #renew(lead: Lead, workEnded: AbortSignal): Promise<void> {
    const until = AbortSignal.any([workEnded, lead.signal]);
    while (await pause(this.#jittered(), until, this.#options.clock)) {
      const at = this.#options.clock.now();
      const isOurs = await abortable(this.#attempt(lead.signal), lead.signal).catch(() => false);
      if (isOurs) lead.renewed(at);
      else if (this.leader && this.leader !== this.#options.identity)
        lead.end(`${this.leader} holds the lease`);
    }
  }

  /** Tries once to take or to renew the lease. @returns whether it is ours */
  async #attempt(signal?: AbortSignal): Promise<boolean> {
    const { logger, identity, name } = this.#options;
    // Of each of the two requests. Where a connection has died, a second attempt gets a new one.
    const limits = { timeoutMs: this.#options.renewDeadlineMs / 2, signal };
    try {
      const current = await this.#read(limits);
      if (current) this.#observe(current);
      // Of one that somebody has deleted the holder leads on, and makes it again.
      const last = current ?? this.#observed?.lease;
      if (last && !this.#mayTake(last)) return false;
      this.#observe(await this.#write(this.#claim(current), current, limits));
      return true;
    } catch (err) {
      if (signal?.aborted) return false;
      // Another candidate was faster, the next read tells who.
      const level = hasCode(err, "Conflict") ? "debug" : "warn";
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
    this.#observed = { lease, at: this.#options.clock.now() };
  }

  #mayTake(lease: Lease): boolean {
    const { holderIdentity, leaseDurationSeconds } = lease.spec;
    if (!holderIdentity || holderIdentity === this.#options.identity) return true;
    const observedAt = this.#observed?.at ?? this.#options.clock.now();
    const durationMs = leaseDurationSeconds ? leaseDurationSeconds * 1000 : this.#options.leaseDurationMs;
    return observedAt + durationMs <= this.#options.clock.now();
  }

  #claim(current: Lease | undefined): Lease["spec"] {
    const { identity } = this.#options;
    const now = microTime();
    const isRenewal = current?.spec.holderIdentity === identity;
    const transitions = current?.spec.leaseTransitions ?? 0;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#options.leaseDurationMs / 1000),
      acquireTime: isRenewal ? (current.spec.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: isRenewal || !current ? transitions : transitions + 1,
    };
  }

  async #release(): Promise<void> {
    const { logger, identity, name } = this.#options;
    try {
      // Not as last seen: the answer to the last renewal may have been lost.
      const current = await this.#read(RELEASE);
      if (current?.spec.holderIdentity !== identity) return;
      const now = microTime();
      const spec = {
        ...current.spec,
        holderIdentity: "",
        leaseDurationSeconds: 1,
        acquireTime: now,
        renewTime: now,
      };
      this.#observe(await this.#write(spec, current, RELEASE));
      logger.info({ lease: name, identity }, "released the lead");
    } catch (err) {
      logger.warn({ lease: name, identity, err }, "cannot release the lead, it will expire");
    }
  }

  async #read(limits: Limits): Promise<Lease | undefined> {
    const { transport, namespace, name } = this.#options;
    const path = resourcePath(LEASE_RESOURCE, { namespace, name });
    const found = await ifFound(transport.request({ method: "GET", path, ...limits }));
    return found === undefined ? undefined : Lease.parse(found);
  }

  async #write(spec: Lease["spec"], current: Lease | undefined, limits: Limits): Promise<Lease> {
    const { transport, namespace, name } = this.#options;
    const metadata = current?.metadata ?? { namespace, name };
    const body = { apiVersion: LEASE_RESOURCE.apiVersion, kind: LEASE_RESOURCE.kind, metadata, spec };
    const path = resourcePath(LEASE_RESOURCE, { namespace, name });
    // It may be made by PUT, unlike most other objects: so a Role can allow that by its name.
    return Lease.parse(await transport.request({ method: "PUT", path, body, ...limits }));
  }

  #jittered(): number {
    return this.#options.retryPeriodMs * (1 + Math.random() / 5);
  }
}

/** The work, and then the end of its signal: to return early does not give up the lead. */
async function leadUntil(callbacks: LeaderCallbacks, signal: AbortSignal): Promise<void> {
  await callbacks.onLead(signal);
  if (!signal.aborted) await once(signal, "abort");
}
