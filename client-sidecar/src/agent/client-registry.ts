/** The clients of this node: in memory for speed, in files for the next start of the agent. */

import type { Logger } from "@egress-nat/program";
import type { ClientRecord, EgressReference } from "../state/record.ts";
import type { StateDirectory } from "../state/state-directory.ts";
import { egressKey } from "./egress-view.ts";
import { ClientRecordSchema } from "./record-schema.ts";

/** Every change is in a file before it is here: whoever dies in between has told nobody yet. */
export class ClientRegistry {
  readonly #state: StateDirectory;
  readonly #logger: Logger;
  readonly #records = new Map<string, ClientRecord>();

  constructor(state: StateDirectory, logger: Logger) {
    this.#state = state;
    this.#logger = logger;
  }

  get size(): number {
    return this.#records.size;
  }

  /** Reads the files. A record that was being buried when its writer was interrupted is buried now. */
  load(): void {
    for (const containerId of this.#state.recordIds()) {
      const record = this.#read(containerId);
      if (record === undefined) this.#state.removeRecord(containerId);
      else this.#records.set(containerId, record);
    }
    this.buryInterrupted();
  }

  /** Buries the records of which an address has a tombstone: the CNI plugin may have begun to, and been killed. */
  buryInterrupted(): void {
    for (const record of this.values()) {
      if (!this.#state.hasRecord(record.containerId)) this.#records.delete(record.containerId);
      else if (record.addresses.some((address) => this.#state.hasTombstone(address))) {
        this.bury(record.containerId);
      }
    }
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

  put(record: ClientRecord): void {
    this.#state.writeRecord(record);
    this.#records.set(record.containerId, record);
  }

  /**
   * Turns a client into tombstones of its addresses.
   *
   * @returns the record; undefined where there is none
   */
  bury(containerId: string): ClientRecord | undefined {
    const record = this.#records.get(containerId);
    if (record === undefined) return undefined;
    this.#state.bury(record);
    this.#records.delete(containerId);
    return record;
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
