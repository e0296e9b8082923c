/** The node-local state that the CNI plugin and the node agent share: plain files. */

import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { RUN_DIRECTORY, STATE_DIRECTORY } from "@egress-nat/crds/names";
import { isTemporary, writeFileAtomically } from "./atomic-file.ts";
import type { ClientRecord, TrustedAddress } from "./record.ts";
import { type Attachment, parseRecordId, recordId, shortened } from "./record-id.ts";

export interface StateLocations {
  /** Gone after a reboot, as the pods are. */
  readonly runDirectory: string;
  /** There after a reboot. */
  readonly stateDirectory: string;
}

export const NODE_LOCATIONS: StateLocations = {
  runDirectory: RUN_DIRECTORY,
  stateDirectory: STATE_DIRECTORY,
};

const RECORD_SUFFIX = ".json";

/**
 * One record per client, for as long as it is one, and one file per address that a gateway may trust: from before the
 * first slice entry that names the address until no gateway trusts it any more. A client ends when its record is removed;
 * the files of its addresses are then their tombstones. So neither the death of whoever writes nor a reboot makes an
 * address free too early.
 */
export class NodeState {
  readonly #clients: string;
  readonly #addresses: string;

  constructor({ runDirectory, stateDirectory }: StateLocations) {
    this.#clients = join(runDirectory, "clients");
    this.#addresses = join(stateDirectory, "addresses");
  }

  hasRecord(id: string): boolean {
    return existsSync(this.#recordPath(id));
  }

  /** @throws Error when there is no such record */
  readRecord(id: string): unknown {
    return JSON.parse(readFileSync(this.#recordPath(id), "utf8"));
  }

  /** The attachment that a record is of, {@link shortened}, as far as it is known: an earlier version has kept no network. */
  attachment(id: string): Partial<Attachment> {
    const named = parseRecordId(id);
    return named.ifname === undefined ? { ...named, ...this.#keptIfname(id) } : named;
  }

  writeRecord(record: ClientRecord): void {
    writeFileAtomically(this.#recordPath(recordId(record)), JSON.stringify(record));
  }

  removeRecord(id: string): void {
    rmSync(this.#recordPath(id), { force: true });
  }

  /** Of all records. */
  recordIds(): readonly string[] {
    return list(this.#clients)
      .filter((file) => file.endsWith(RECORD_SUFFIX))
      .map((file) => file.slice(0, -RECORD_SUFFIX.length));
  }

  /** Of the records of one container. */
  recordIdsOf(containerId: string): readonly string[] {
    return this.recordIds().filter((id) => parseRecordId(id).containerId === shortened(containerId));
  }

  /**
   * Whether a gateway may trust an address, that of a client or of a former one.
   *
   * @param address canonical
   * @throws Error when it cannot be told
   */
  isTrusted(address: string): boolean {
    return statSync(join(this.#addresses, address), { throwIfNoEntry: false }) !== undefined;
  }

  /** @throws Error when no gateway trusts it */
  readTrusted(address: string): unknown {
    return JSON.parse(readFileSync(join(this.#addresses, address), "utf8"));
  }

  /** All addresses that a gateway may trust. */
  trustedAddresses(): readonly string[] {
    return list(this.#addresses);
  }

  writeTrusted(trusted: TrustedAddress): void {
    writeFileAtomically(join(this.#addresses, trusted.address), JSON.stringify(trusted));
  }

  removeTrusted(address: string): void {
    rmSync(join(this.#addresses, address), { force: true });
  }

  #keptIfname(id: string): Pick<Attachment, "ifname"> | undefined {
    try {
      return { ifname: (this.readRecord(id) as Attachment).ifname };
    } catch {
      return undefined; // ended meanwhile, or broken: it is the container's, by whatever interface
    }
  }

  #recordPath(id: string): string {
    return join(this.#clients, `${id}${RECORD_SUFFIX}`);
  }
}

/** @throws Error when a directory that is there cannot be read */
function list(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((file) => !isTemporary(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
