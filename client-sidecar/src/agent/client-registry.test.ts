import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StateDirectory } from "../state/state-directory.ts";
import { clientRecord } from "../testing/client-record.ts";
import { ClientRegistry } from "./client-registry.ts";

const logger = createLogger({ name: "test", level: "silent" });

let folder: string;
let state: StateDirectory;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-registry-"));
  state = new StateDirectory(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

function loaded(): ClientRegistry {
  const registry = new ClientRegistry(state, logger);
  registry.load();
  return registry;
}

describe("the records of clients", () => {
  it("are there again after a restart", () => {
    const record = clientRecord();
    loaded().put(record);
    const registry = loaded();
    expect(registry.values()).toEqual([record]);
    expect(registry.ofEgress({ namespace: "internet", name: "nat" })).toEqual([record]);
    expect(registry.ofEgress({ namespace: "internet", name: "other" })).toEqual([]);
  });

  it("become one tombstone per address", () => {
    loaded().put(clientRecord({ addresses: ["10.244.0.5", "fd00:244::5"] }));
    loaded().bury("c0ffee");
    expect(state.tombstones()).toEqual(["10.244.0.5", "fd00:244::5"]);
    expect(loaded().size).toBe(0);
  });

  it("are buried to the end when who began it was killed", () => {
    loaded().put(clientRecord({ addresses: ["10.244.0.5", "fd00:244::5"] }));
    state.writeTombstone({ address: "10.244.0.5", egresses: [] });
    expect(loaded().size).toBe(0);
    expect(state.tombstones()).toEqual(["10.244.0.5", "fd00:244::5"]);
  });

  it("that the CNI plugin has buried behind the agent's back are forgotten", () => {
    const registry = loaded();
    registry.put(clientRecord());
    state.bury(clientRecord());
    registry.buryInterrupted();
    expect(registry.size).toBe(0);
  });

  it.each(["{", "{}", '{"containerId":1}'])("are dropped when they hold %s", (content) => {
    loaded().put(clientRecord());
    writeFileSync(join(folder, "clients/c0ffee.json"), content);
    expect(loaded().size).toBe(0);
    expect(readdirSync(join(folder, "clients"))).toEqual([]);
  });

  it("are not taken from a file that was being written when its writer was killed", () => {
    loaded().put(clientRecord());
    writeFileSync(join(folder, "clients/.other.json.77"), '{"half":');
    expect(loaded().size).toBe(1);
  });
});
