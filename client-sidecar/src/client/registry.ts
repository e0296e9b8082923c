/** The clients of this node: in memory for speed, in files for the next start of the agent. */

import { egressKey } from "../records/egress-key.ts";
import type { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { byAge, type ClientRecord, type EgressReference, type TrustedAddress } from "../records/schema.ts";
import type { Phase } from "./life.ts";

/** Every change is in a file before it is here: whoever dies in between has told nobody yet. */
export class ClientRegistry {
  readonly #state: NodeState;
  readonly #records = new Map<string, ClientRecord>();
  /** Ids of those that pods still wait for. */
  readonly #adding = new Set<string>();

  constructor(state: NodeState) {
    this.#state = state;
  }

  /**
   * Reads the files. A client of which somebody has removed the addresses' files has them again.
   *
   * @throws Error when they cannot be read now
   */
  load(): void {
    for (const id of this.#state.recordIds()) {
      const record = this.#state.readClient(id);
      if (record === undefined) this.#state.removeRecord(id);
      else {
        this.#trust(record);
        this.#records.set(id, record);
      }
    }
  }

  /** Forgets a client if the CNI plugin has buried it, because the agent was not there, or hung. */
  forgetBuried(id: string): void {
    if (!this.#state.hasRecord(id)) this.#forget(id);
  }

  /**
   * Writes the file of a client's address anew: the file that is there does not say whose it is.
   *
   * @returns whether a client has the address
   */
  reclaim(address: string): boolean {
    const client = this.values().find(({ addresses }) => addresses.includes(address));
    if (client !== undefined) this.#state.writeTrusted(trustedAddress(address, client));
    return client !== undefined;
  }

  get(id: string): ClientRecord | undefined {
    return this.#records.get(id);
  }

  /** Whether a client is still the one that was added, and neither deleted nor added again since. */
  holds(record: ClientRecord): boolean {
    return this.#records.get(recordId(record))?.addedAt === record.addedAt;
  }

  phase(record: ClientRecord): Phase {
    if (!this.holds(record)) return "leaving";
    return this.#adding.has(recordId(record)) ? "adding" : "running";
  }

  /** Puts a client that is held into another phase. */
  enter(record: ClientRecord, phase: Phase): void {
    if (phase !== "adding" && this.holds(record)) this.#adding.delete(recordId(record));
  }

  /**
   * The client that a network namespace belongs to. Of several sandboxes that were made in it that is the last one; of the
   * networks of one sandbox the first, which is the pod network: its interface stays the way to the gateways.
   *
   * @param coming a client that is about to be added
   */
  owner(netns: string, coming?: ClientRecord): ClientRecord | undefined {
    const all = coming === undefined ? this.values() : [...this.values(), coming];
    const inside = all.filter((record) => record.netns === netns).sort(byAge);
    const last = inside.at(-1);
    return inside.find(({ containerId }) => containerId === last?.containerId);
  }

  /** Whether a client is the one that its network namespace is brought up to date as. */
  isOwner(record: ClientRecord): boolean {
    const owner = this.owner(record.netns);
    return owner === undefined || recordId(owner) === recordId(record);
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
    this.#records.set(recordId(record), record);
    this.#adding.add(recordId(record));
  }

  /** Changes what is kept of a client's Egresses; one that has been buried meanwhile stays so. */
  update(record: ClientRecord): void {
    const id = recordId(record);
    if (!this.#state.hasRecord(id)) return;
    this.#state.writeRecord(record);
    this.#records.set(id, record);
  }

  /** Ends a client: what is left of it are the tombstones of its addresses. */
  bury(id: string): void {
    if (!this.#records.has(id)) return;
    this.#state.removeRecord(id);
    this.#forget(id);
  }

  #forget(id: string): void {
    this.#records.delete(id);
    this.#adding.delete(id);
  }

  #trust(client: ClientRecord): void {
    for (const address of client.addresses) {
      if (!this.#state.isTrusted(address)) this.#state.writeTrusted(trustedAddress(address, client));
    }
  }
}

function trustedAddress(address: string, client: ClientRecord): TrustedAddress {
  const egresses = client.egresses.map(({ namespace, name }) => ({ namespace, name }));
  return { address, record: recordId(client), egresses };
}
