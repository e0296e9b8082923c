/** Gateways that the API named a moment ago: an EndpointSlice may be made anew, or an endpoint move to another one. */

import { type Clock, type Endpoint, systemClock } from "@egress-nat/kube";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";

/** Short, because an address may be another pod's by then. */
const LINGER_MS = 10_000;

export class VanishedGateways {
  readonly #clock: Clock;
  /** By Egress and by name. */
  readonly #vanished = new Map<string, Map<string, Endpoint>>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /**
   * @param before those that an EndpointSlice had
   * @param now all that the API names
   * @param onForgotten called as each of those that have vanished is forgotten
   */
  note(
    reference: EgressReference,
    before: readonly Endpoint[],
    now: readonly Endpoint[],
    onForgotten: () => void,
  ): void {
    const key = egressKey(reference);
    const named = new Set(now.map(({ name }) => name));
    const gone = before.filter(({ name }) => !named.has(name));
    const vanished = this.#vanished.get(key) ?? new Map<string, Endpoint>();
    for (const name of named) vanished.delete(name);
    for (const endpoint of gone) {
      if (vanished.has(endpoint.name)) continue;
      // They take no new flows.
      vanished.set(endpoint.name, { ...endpoint, ready: false, serving: false });
      this.#clock.after(LINGER_MS, () => {
        if (vanished.delete(endpoint.name)) onForgotten();
      });
    }
    this.#vanished.set(key, vanished);
  }

  of(reference: EgressReference): readonly Endpoint[] {
    return [...(this.#vanished.get(egressKey(reference))?.values() ?? [])];
  }
}
