import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import type { Logger } from "@egress-nat/program";
import { ZodError } from "zod";
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

  /**
   * @returns undefined where there is none any more, or one that is not understood, which the log says
   * @throws Error when it cannot be read now
   */
  readClient(id: string): ClientRecord | undefined {
    try {
      return unlessMissing(() => ClientRecord.parse(this.readRecord(id)), undefined);
    } catch (err) {
      if (!isNotUnderstood(err)) throw err;
      // Its slice entries have no record then, and are withdrawn as those of any other pod that is gone.
      this.#logger.error({ err, record: id }, "cannot understand the record of a client, dropping it");
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

  /** The addresses that may be tombstones. */
  tombstones(): readonly string[] {
    return this.trustedAddresses().filter((address) => this.mayBeTombstone(address));
  }

  /** Whether gateways may still trust an address of which the client has no record any more; also where that cannot be told now. */
  mayBeTombstone(address: string): boolean {
    try {
      return this.tombstone(address) !== undefined;
    } catch {
      return true; // whoever withdraws it hears why
    }
  }

  /**
   * @returns undefined where the address is free, or that of a client
   * @throws Error when it cannot be told now
   */
  tombstone(address: string): TrustedAddress | undefined {
    if (!this.isTrusted(address)) return undefined;
    const trusted = this.#readTrusted(address);
    const { record } = trusted;
    return record !== undefined && this.hasRecord(record) ? undefined : trusted;
  }

  /**
   * Adds Egresses whose gateways may trust an address of a client that is gone.
   *
   * @throws Error when those that are known cannot be read now, or the file cannot be written
   */
  addTombstone(address: string, egresses: readonly EgressReference[]): void {
    const known = this.isTrusted(address) ? this.#readTrusted(address) : undefined;
    const before = known?.egresses ?? [];
    const all = new Map([...before, ...egresses].map((egress) => [egressKey(egress), egress]));
    // Where the disk is full, what says it all already is no reason to fail.
    if (known !== undefined && all.size === before.length) return;
    this.writeTrusted({ address, ...known, egresses: [...all.values()] });
  }

  #readTrusted(address: string): TrustedAddress {
    try {
      return TrustedAddress.parse(JSON.parse(FILES.readFile(this.addressPath(address))));
    } catch (err) {
      if (!isNotUnderstood(err)) throw err;
      // Slices hold what records say, and this address is in none: nothing is left to withdraw by name.
      this.#logger.error(
        { err, address },
        "cannot understand the file of a trusted address, its Egresses are not known",
      );
      return { address, egresses: [] };
    }
  }
}

/** Whether a file was read, and is none of ours: another attempt would find the same in it. */
function isNotUnderstood(error: unknown): boolean {
  return error instanceof SyntaxError || error instanceof ZodError;
}

function unlessMissing<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise;
    throw error;
  }
}
