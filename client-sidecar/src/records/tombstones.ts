/** What is left of former clients: addresses that gateways may still trust. */

import type { Logger } from "@egress-nat/program";
import { egressKey } from "./egress-key.ts";
import type { NodeState } from "./node-state.ts";
import { type EgressReference, TrustedAddress } from "./schema.ts";

/** The trusted addresses of which the client has no record any more. */
export class Tombstones {
  readonly #state: NodeState;
  readonly #logger: Logger;

  constructor(state: NodeState, logger: Logger) {
    this.#state = state;
    this.#logger = logger;
  }

  addresses(): readonly string[] {
    return this.#state.trustedAddresses().filter((address) => this.get(address) !== undefined);
  }

  /** @returns undefined where the address is free, or that of a client */
  get(address: string): TrustedAddress | undefined {
    if (!this.#state.isTrusted(address)) return undefined;
    const trusted = this.#read(address);
    const { record } = trusted;
    return record !== undefined && this.#state.hasRecord(record) ? undefined : trusted;
  }

  /** Adds Egresses whose gateways may trust an address of a client that is gone. */
  add(address: string, egresses: readonly EgressReference[]): void {
    const known = this.#state.isTrusted(address) ? this.#read(address) : { address, egresses: [] };
    const all = new Map([...known.egresses, ...egresses].map((egress) => [egressKey(egress), egress]));
    this.#state.writeTrusted({ ...known, egresses: [...all.values()] });
  }

  remove(address: string): void {
    this.#state.removeTrusted(address);
  }

  #read(address: string): TrustedAddress {
    try {
      return TrustedAddress.parse(this.#state.readTrusted(address));
    } catch (err) {
      // Slices hold what records say, and this address is in none: nothing is left to withdraw by name.
      this.#logger.error(
        { err, address },
        "cannot read the file of a trusted address, its Egresses are not known",
      );
      return { address, egresses: [] };
    }
  }
}
