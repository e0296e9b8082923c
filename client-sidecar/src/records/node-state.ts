import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import type { Logger } from "@egress-nat/program";
import { writeFileAtomically } from "./atomic-file.ts";
import { egressKey } from "./egress-key.ts";
import { recordId } from "./record-id.ts";
import { ClientRecord, type EgressReference, TrustedAddress } from "./schema.ts";
import { type Files, StateFolder, type StateLocations } from "./state-folder.ts";

const FILES: Files = {
  readFile: (path) => readFileSync(path, "utf8"),
  listDirectory: (path) => unlessMissing(() => readdirSync(path), []),
  exists: (path) => unlessMissing(() => statSync(path) !== undefined, false),
  remove: (path) => rmSync(path, { force: true }),
};

/** The state as the node agent has it, which alone writes it. What it reads back is parsed. */
export class NodeState extends StateFolder {
  readonly #logger: Logger;

  constructor(locations: StateLocations, logger: Logger) {
    super(locations, FILES);
    this.#logger = logger;
  }

  /** @returns undefined where it cannot be read, which the log says */
  readClient(id: string): ClientRecord | undefined {
    try {
      return ClientRecord.parse(this.readRecord(id));
    } catch (err) {
      // Its slice entries have no record then, and are withdrawn as those of any other pod that is gone.
      this.#logger.error({ err, record: id }, "cannot read the record of a client, dropping it");
      return undefined;
    }
  }

  writeRecord(record: ClientRecord): void {
    writeFileAtomically(this.recordPath(recordId(record)), JSON.stringify(record));
  }

  writeTrusted(trusted: TrustedAddress): void {
    writeFileAtomically(this.addressPath(trusted.address), JSON.stringify(trusted));
  }

  removeTrusted(address: string): void {
    FILES.remove(this.addressPath(address));
  }

  /** The trusted addresses of which the client has no record any more: gateways may still trust them. */
  tombstones(): readonly string[] {
    return this.trustedAddresses().filter((address) => this.tombstone(address) !== undefined);
  }

  /** @returns undefined where the address is free, or that of a client */
  tombstone(address: string): TrustedAddress | undefined {
    if (!this.isTrusted(address)) return undefined;
    const trusted = this.#readTrusted(address);
    const { record } = trusted;
    return record !== undefined && this.hasRecord(record) ? undefined : trusted;
  }

  /** Adds Egresses whose gateways may trust an address of a client that is gone. */
  addTombstone(address: string, egresses: readonly EgressReference[]): void {
    const known = this.isTrusted(address) ? this.#readTrusted(address) : { address, egresses: [] };
    const all = new Map([...known.egresses, ...egresses].map((egress) => [egressKey(egress), egress]));
    this.writeTrusted({ ...known, egresses: [...all.values()] });
  }

  #readTrusted(address: string): TrustedAddress {
    try {
      return TrustedAddress.parse(JSON.parse(FILES.readFile(this.addressPath(address))));
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

function unlessMissing<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise;
    throw error;
  }
}
