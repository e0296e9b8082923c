interface Rate {
  /** What is allowed on average. */
  readonly perSecond: number;
  /** What is allowed at once, after a time without any. */
  readonly burst: number;
}

/** A node that starts 110 clients at once asks 900 times in the first second, then 440 times a second. */
const EACH_SOURCE: Rate = { perSecond: 1_000, burst: 2_000 };

/** Enough for a few clients that start: each asks nine times in the first second, then four times a second. */
const MODEST_SOURCE: Rate = { perSecond: 20, burst: 40 };

/** All 5,000 nodes of the largest cluster that Kubernetes supports may ask for the first time at once. */
const NEW_SOURCES: Rate = { perSecond: 2_000, burst: 5_000 };

/** 1,000 nodes that ask five times a second are half of it. To answer it takes less than a fifth of a core, at 17 µs each. */
const ALL_SOURCES: Rate = { perSecond: 10_000, burst: 10_000 };

/** What sources leave there that ask more than is modest. */
const KEPT_FOR_MODEST = ALL_SOURCES.burst / 2;

/** More than a cluster has nodes; about two megabytes. */
const MAX_SOURCES = 8_192;

/**
 * Limits how many requests are answered: 1,000 a second for each source (2,000 at once), 10,000 for all together, and
 * 2,000 (5,000 at once) that are the first of a source. A request beyond these is not answered.
 *
 * Who asks is not known by name: agents ask from the addresses of their nodes, which a gateway has no right to read. So
 * everybody is answered, but sources come first that ask at most 20 times a second: a few pods that ask as often as they
 * can take nothing from these. The 8,192 sources that asked last are remembered, and who floods a gateway with forged
 * addresses has no more of these than the share of newcomers.
 *
 * It does not hold against 500 sources at 20 requests a second, or forged addresses in that number: they use up the total.
 * Who forges the address of a node uses up that node's share.
 */
export class SourceLimit {
  readonly #new = new TokenBucket(NEW_SOURCES);
  readonly #all = new TokenBucket(ALL_SOURCES);
  /** The one that asked last is the last. */
  readonly #sources = new Map<string, Readonly<Record<"share" | "modest", TokenBucket>>>();

  /**
   * @param address that a request came from
   * @param nowMs a monotonic clock
   * @returns whether to answer it
   */
  admits(address: string, nowMs: number): boolean {
    const source = this.#sources.get(address) ?? this.#newcomer(nowMs);
    if (source === undefined) return false;
    this.#sources.delete(address);
    this.#sources.set(address, source);
    const isModest = source.modest.take(nowMs);
    return source.share.take(nowMs) && this.#all.take(nowMs, isModest ? 0 : KEPT_FOR_MODEST);
  }

  #newcomer(nowMs: number) {
    if (!this.#new.take(nowMs)) return undefined;
    const [oldest] = this.#sources.keys();
    if (oldest !== undefined && this.#sources.size >= MAX_SOURCES) this.#sources.delete(oldest);
    return { share: new TokenBucket(EACH_SOURCE), modest: new TokenBucket(MODEST_SOURCE) };
  }
}

/** @see https://en.wikipedia.org/wiki/Token_bucket */
class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #filledAtMs = Number.NEGATIVE_INFINITY;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#tokens = rate.burst;
  }

  /** @param kept how many tokens must be left there */
  take(nowMs: number, kept = 0): boolean {
    const { perSecond, burst } = this.#rate;
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#filledAtMs) / 1000) * perSecond);
    this.#filledAtMs = nowMs;
    if (this.#tokens < 1 + kept) return false;
    this.#tokens -= 1;
    return true;
  }
}
