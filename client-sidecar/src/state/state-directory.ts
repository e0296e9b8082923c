/** The node-local state that the CNI plugin and the node agent share: plain files, gone after a reboot as the pods are. */

import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isTemporary, writeFileAtomically } from "./atomic-file.ts";
import type { ClientRecord, EgressReference, Tombstone } from "./record.ts";

const RECORD_SUFFIX = ".json";

/**
 * One record per client, from before its first slice entry until after its last, and one tombstone per address that a
 * gateway may still trust though its client is gone. Whoever finds both, a tombstone and a record of one address, was
 * interrupted while it buried the record: the tombstone holds.
 */
export class StateDirectory {
  readonly #clients: string;
  readonly #tombstones: string;

  /** @param root /run/egress-nat but in tests */
  constructor(root: string) {
    this.#clients = join(root, "clients");
    this.#tombstones = join(root, "tombstones");
  }

  hasRecord(containerId: string): boolean {
    return existsSync(this.#recordPath(containerId));
  }

  /** @throws Error when there is no such record */
  readRecord(containerId: string): unknown {
    return JSON.parse(readFileSync(this.#recordPath(containerId), "utf8"));
  }

  writeRecord(record: ClientRecord): void {
    writeFileAtomically(this.#recordPath(record.containerId), JSON.stringify(record));
  }

  removeRecord(containerId: string): void {
    rmSync(this.#recordPath(containerId), { force: true });
  }

  /** Container ids of all records. */
  recordIds(): readonly string[] {
    return list(this.#clients)
      .filter((file) => file.endsWith(RECORD_SUFFIX))
      .map((file) => file.slice(0, -RECORD_SUFFIX.length));
  }

  /** @param address canonical */
  hasTombstone(address: string): boolean {
    return existsSync(join(this.#tombstones, address));
  }

  readTombstone(address: string): unknown {
    return JSON.parse(readFileSync(join(this.#tombstones, address), "utf8"));
  }

  /** Addresses of all tombstones. */
  tombstones(): readonly string[] {
    return list(this.#tombstones);
  }

  writeTombstone(tombstone: Tombstone): void {
    writeFileAtomically(join(this.#tombstones, tombstone.address), JSON.stringify(tombstone));
  }

  removeTombstone(address: string): void {
    rmSync(join(this.#tombstones, address), { force: true });
  }

  /**
   * Turns a client into tombstones of its addresses. Tombstones come first: at no moment is an address free that a
   * gateway may still trust.
   */
  bury(record: {
    readonly containerId: string;
    readonly addresses: readonly string[];
    readonly egresses: readonly EgressReference[];
  }): void {
    const egresses = record.egresses.map(({ namespace, name }) => ({ namespace, name }));
    for (const address of record.addresses) this.writeTombstone({ address, egresses });
    this.removeRecord(record.containerId);
  }

  #recordPath(containerId: string): string {
    return join(this.#clients, `${containerId}${RECORD_SUFFIX}`);
  }
}

function list(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory).filter((file) => !isTemporary(file)) : [];
}
