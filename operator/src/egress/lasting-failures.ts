/** Which failures of the API server last: most pass by themselves, and nobody is to be told of them. */

import type { ChildKind } from "./children/index.ts";

/** An election of etcd is over by then, and an API server has started. */
const LASTING_MS = 15_000;

interface Failure {
  readonly sinceMs: number;
  readonly isLasting: boolean;
}

/** What is kept here is of one lead: the next one finds out by itself. */
export class LastingFailures {
  /** By the Egress's key: the children at which its last look has met a failure. */
  readonly #failures = new Map<string, ReadonlyMap<ChildKind, Failure>>();

  /**
   * Takes what a look at an Egress has met.
   *
   * @param key of the Egress
   * @param children at which the API server has failed
   * @returns those at which it goes on to
   */
  seen(key: string, children: readonly ChildKind[], nowMs: number): ReadonlySet<ChildKind> {
    const before = this.#failures.get(key);
    const failures = children.map((child) => {
      const { sinceMs } = before?.get(child) ?? { sinceMs: nowMs };
      return [child, { sinceMs, isLasting: nowMs - sinceMs >= LASTING_MS }] as const;
    });
    this.#keep(key, failures);
    return new Set(failures.flatMap(([child, { isLasting }]) => (isLasting ? [child] : [])));
  }

  /** A look could not be finished, as in an outage: what has not lasted yet may be over after it. */
  interrupted(key: string): void {
    this.#keep(
      key,
      [...(this.#failures.get(key) ?? [])].filter(([, { isLasting }]) => isLasting),
    );
  }

  /** The Egress is gone. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  #keep(key: string, failures: readonly (readonly [ChildKind, Failure])[]): void {
    if (failures.length > 0) this.#failures.set(key, new Map(failures));
    else this.#failures.delete(key);
  }
}
