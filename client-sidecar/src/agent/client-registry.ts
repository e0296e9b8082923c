/** The clients of this node: in memory for speed, in files for the next start of the agent. */

import type { Logger } from "@egress-nat/program";
import type { NodeState } from "../state/node-state.ts";
import type { ClientRecord, EgressReference } from "../state/record.ts";
import { egressKey } from "./egress-view.ts";
import { ClientRecordSchema } from "./record-schema.ts";

/** Every change is in a file before it is here: whoever dies in between has told nobody yet. */
export class ClientRegistry {
  readonly #state: NodeState;
  readonly #logger: Logger;
  readonly #records = new Map<string, ClientRecord>();

  constructor(state: NodeState, logger: Logger) {
    this.#state = state;
    this.#logger = logger;
  }

  get size(): number {
    return this.#records.size;
  }

  /** Reads the files. A client of which somebody has removed the addresses' files has them again. */
  load(): void {
    for (const containerId of this.#state.recordIds()) {
      const record = this.#read(containerId);
      if (record === undefined) this.#state.removeRecord(containerId);
      else {
        this.#trust(record);
        this.#records.set(containerId, record);
      }
    }
  }

  /** Forgets a client if the CNI plugin has buried it, because the agent was not there, or hung. */
  forgetBuried(containerId: string): void {
    if (!this.#state.hasRecord(containerId)) this.#records.delete(containerId);
  }

  get(containerId: string): ClientRecord | undefined {
    return this.#records.get(containerId);
  }

  values(): readonly ClientRecord[] {
    return [...this.#records.values()];
  }

  ofEgress(reference: EgressReference): readonly ClientRecord[] {
    const key = egressKey(reference);
    return this.values().filter(({ egresses }) => egresses.some((egress) => egressKey(egress) === key));
  }

  /** Adds a client. From here on its addresses are given to no other pod. */
  add(record: ClientRecord): void {
    this.#trust(record);
    this.#state.writeRecord(record);
    this.#records.set(record.containerId, record);
  }

  /** Changes what is kept of a client's Egresses; one that has been buried meanwhile stays so. */
  update(record: ClientRecord): void {
    if (!this.#state.hasRecord(record.containerId)) return;
    this.#state.writeRecord(record);
    this.#records.set(record.containerId, record);
  }

  /**
   * Ends a client: what is left of it are the tombstones of its addresses.
   *
   * @returns the record; undefined where there is none
   */
  bury(containerId: string): ClientRecord | undefined {
    const record = this.#records.get(containerId);
    if (record === undefined) return undefined;
    this.#state.removeRecord(containerId);
    this.#records.delete(containerId);
    return record;
  }

  #trust({ containerId, addresses, egresses: recorded }: ClientRecord): void {
    const egresses = recorded.map(({ namespace, name }) => ({ namespace, name }));
    for (const address of addresses) {
      if (!this.#state.isTrusted(address)) this.#state.writeTrusted({ address, containerId, egresses });
    }
  }

  #read(containerId: string): ClientRecord | undefined {
    try {
      return ClientRecordSchema.parse(this.#state.readRecord(containerId));
    } catch (err) {
      // Its slice entries have no record then, and are withdrawn as those of any other pod that is gone.
      this.#logger.error({ err, containerId }, "client record cannot be read, it is dropped");
      return undefined;
    }
  }
}
