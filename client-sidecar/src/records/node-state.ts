import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { writeFileAtomically } from "./atomic-file.ts";
import { recordId } from "./record-id.ts";
import type { ClientRecord, TrustedAddress } from "./schema.ts";
import { type Files, StateFolder, type StateLocations } from "./state-folder.ts";

const FILES: Files = {
  readFile: (path) => readFileSync(path, "utf8"),
  listDirectory: (path) => unlessMissing(() => readdirSync(path), []),
  exists: (path) => unlessMissing(() => statSync(path) !== undefined, false),
  remove: (path) => rmSync(path, { force: true }),
};

/** The state as the node agent has it, which alone writes it. */
export class NodeState extends StateFolder {
  constructor(locations: StateLocations) {
    super(locations, FILES);
  }

  writeRecord(record: ClientRecord): void {
    writeFileAtomically(this.recordPath(recordId(record)), JSON.stringify(record));
  }

  /** @throws Error when no gateway trusts it */
  readTrusted(address: string): unknown {
    return JSON.parse(FILES.readFile(this.addressPath(address)));
  }

  writeTrusted(trusted: TrustedAddress): void {
    writeFileAtomically(this.addressPath(trusted.address), JSON.stringify(trusted));
  }

  removeTrusted(address: string): void {
    FILES.remove(this.addressPath(address));
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
