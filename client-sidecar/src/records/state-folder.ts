/** The node-local state that the CNI plugin and the node agent share, as far as both of them use it: plain files. */

import { RUN_DIRECTORY, STATE_DIRECTORY } from "@egress-nat/crds/names";
import { parseRecordId } from "./record-id.ts";
import type { Attachment } from "./schema.ts";

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

/** What the state needs of a file system; plugin and agent run on different ones. */
export interface Files {
  /** @throws Error when there is no such file, or it cannot be read */
  readFile(path: string): string;
  /**
   * @returns names, none where there is no such directory
   * @throws Error when it cannot be read
   */
  listDirectory(path: string): readonly string[];
  /** @throws Error when it cannot be told */
  exists(path: string): boolean;
  /** @throws Error when it is still there */
  remove(path: string): void;
}

const RECORD_SUFFIX = ".json";

/**
 * One record per client, for as long as it is one, and one file per address that a gateway may trust: from before the
 * first slice entry that names the address until no gateway trusts it any more. A client ends when its record is removed;
 * the files of its addresses are then their tombstones. So neither the death of whoever writes nor a reboot makes an
 * address free too early.
 */
export class StateFolder {
  readonly #files: Files;
  readonly #clients: string;
  readonly #addresses: string;

  constructor({ runDirectory, stateDirectory }: StateLocations, files: Files) {
    this.#files = files;
    this.#clients = `${runDirectory}/clients`;
    this.#addresses = `${stateDirectory}/addresses`;
  }

  /** @throws Error when it cannot be told */
  hasRecord(id: string): boolean {
    return this.#files.exists(this.recordPath(id));
  }

  /** @throws Error when there is no such record */
  readRecord(id: string): unknown {
    return JSON.parse(this.#files.readFile(this.recordPath(id)));
  }

  /** The attachment that a record is of, {@link shortened}, as far as it is known: an earlier version has kept no network. */
  attachment(id: string): Partial<Attachment> {
    const named = parseRecordId(id);
    return named.ifname === undefined ? { ...named, ...this.#keptIfname(id) } : named;
  }

  removeRecord(id: string): void {
    this.#files.remove(this.recordPath(id));
  }

  recordIds(): readonly string[] {
    return this.#list(this.#clients)
      .filter((file) => file.endsWith(RECORD_SUFFIX))
      .map((file) => file.slice(0, -RECORD_SUFFIX.length));
  }

  /**
   * Whether a gateway may trust an address, that of a client or of a former one.
   *
   * @param address canonical
   * @throws Error when it cannot be told
   */
  isTrusted(address: string): boolean {
    return this.#files.exists(this.addressPath(address));
  }

  trustedAddresses(): readonly string[] {
    return this.#list(this.#addresses);
  }

  protected recordPath(id: string): string {
    return `${this.#clients}/${id}${RECORD_SUFFIX}`;
  }

  protected addressPath(address: string): string {
    return `${this.#addresses}/${address}`;
  }

  /** Without temporary files, which begin with a dot. */
  #list(directory: string): readonly string[] {
    return this.#files.listDirectory(directory).filter((file) => !file.startsWith("."));
  }

  #keptIfname(id: string): Pick<Attachment, "ifname"> | undefined {
    try {
      return { ifname: (this.readRecord(id) as Attachment).ifname };
    } catch {
      return undefined; // ended meanwhile, or broken: it is the container's, by whatever interface
    }
  }
}
