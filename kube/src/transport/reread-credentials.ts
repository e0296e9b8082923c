import { isDeepStrictEqual } from "node:util";
import type { Authentication, Credentials } from "./credentials.ts";

/** Tokens and certificates may be replaced at any time, as a rule well before they expire: half a minute with old ones does no harm. */
const REREAD_AFTER_MS = 30_000;

export class RereadCredentials implements Credentials {
  readonly server: URL;
  readonly #load: () => Promise<Authentication>;
  #current: Authentication | undefined;
  #staleAt = 0;

  constructor(server: URL, load: () => Promise<Authentication>) {
    this.server = server;
    this.#load = load;
  }

  async read(): Promise<Authentication> {
    if (this.#current && performance.now() < this.#staleAt) return this.#current;
    const { tls, authorization } = await this.#load();
    const before = this.#current?.tls;
    this.#current = { tls: before && isDeepStrictEqual(before, tls) ? before : tls, authorization };
    this.#staleAt = performance.now() + REREAD_AFTER_MS;
    return this.#current;
  }

  invalidate(): void {
    this.#staleAt = 0;
  }
}
