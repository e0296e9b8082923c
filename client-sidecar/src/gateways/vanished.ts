/** Gateways that the API named a moment ago: an EndpointSlice may be made anew, or an endpoint move to another one. */

import { type Clock, type Endpoint, systemClock } from "@egress-nat/kube";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";

/** Short, because an address may be another pod's by then. */
const LINGER_MS = 10_000;

export class VanishedGateways {
  readonly #clock: Clock;
  /** By Egress, those that the API has named last. */
  readonly #named = new Map<string, readonly Endpoint[]>();
  /** By Egress and by address: those of each family have EndpointSlices of their own. */
  readonly #vanished = new Map<string, Map<string, Endpoint>>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /**
   * @param now all gateways of the Egress that the API names
   * @param onForgotten called as each address that has vanished is forgotten
   */
  note(reference: EgressReference, now: readonly Endpoint[], onForgotten: () => void): void {
    const key = egressKey(reference);
    const before = this.#named.get(key) ?? [];
    if (now.length > 0) this.#named.set(key, now);
    else this.#named.delete(key);
    const named = new Set(now.flatMap(({ addresses }) => addresses));
    const vanished = this.#vanished.get(key) ?? new Map<string, Endpoint>();
    for (const address of named) vanished.delete(address);
    for (const endpoint of before) {
      for (const address of endpoint.addresses) {
        if (named.has(address) || vanished.has(address)) continue;
        // It takes no new flows.
        const remembered = { ...endpoint, addresses: [address], ready: false, serving: false };
        vanished.set(address, remembered);
        this.#clock.after(LINGER_MS, () => {
          if (vanished.get(address) !== remembered) return;
          vanished.delete(address);
          if (vanished.size === 0 && this.#vanished.get(key) === vanished) this.#vanished.delete(key);
          onForgotten();
        });
      }
    }
    if (vanished.size > 0) this.#vanished.set(key, vanished);
    else this.#vanished.delete(key);
  }

  of(reference: EgressReference): readonly Endpoint[] {
    return [...(this.#vanished.get(egressKey(reference))?.values() ?? [])];
  }
}
