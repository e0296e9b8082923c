import type { Refusals } from "@egress-nat/founat";

/** What each client's guard has refused since the last look. Its counts start at zero when it is recreated. */
export class RefusalIncreases {
  readonly #last = new Map<string, Refusals>();
  /** Those whose first counts are no increase. */
  readonly #former: Set<string>;

  /** @param former clients that were there before this: what they have counted so far was told by another process, or by none */
  constructor(former: Iterable<string>) {
    this.#former = new Set(former);
  }

  /**
   * @param counted of the client's guard, now
   * @returns never negative; if the counts have started at zero again, the counts since then
   */
  next(client: string, counted: Refusals): Refusals {
    const last = this.#last.get(client) ?? (this.#former.has(client) ? counted : undefined);
    this.#last.set(client, counted);
    // All counts start at zero together.
    if (last === undefined || counted.rejected < last.rejected || counted.unheard < last.unheard)
      return counted;
    return { rejected: counted.rejected - last.rejected, unheard: counted.unheard - last.unheard };
  }

  /** Forgets all others: a client of such a name that comes later is another one. */
  keep(clients: ReadonlySet<string>): void {
    for (const kept of [this.#last, this.#former])
      for (const client of kept.keys()) if (!clients.has(client)) kept.delete(client);
  }
}
