import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { clientRecord } from "../testing/client-record.ts";
import { locationsIn } from "../testing/locations.ts";
import { ClientRegistry } from "./registry.ts";

const logger = createLogger({ name: "test", level: "silent" });
const ID = recordId(clientRecord());
const NAT = { namespace: "internet", name: "nat" };
const OFFICE = { namespace: "internet", name: "office" };

let folder: string;
let state: NodeState;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-registry-"));
  state = new NodeState(locationsIn(folder), logger);
});
afterEach(() => rmSync(folder, { recursive: true }));

function loaded(): ClientRegistry {
  const registry = new ClientRegistry(state);
  registry.load();
  return registry;
}

function reboot(): void {
  rmSync(locationsIn(folder).runDirectory, { recursive: true });
}

describe("the records of clients", () => {
  it("are there again after a restart", () => {
    const record = clientRecord();
    loaded().add(record);
    const registry = loaded();
    expect(registry.values()).toEqual([record]);
    expect(registry.ofEgress(NAT)).toEqual([record]);
    expect(registry.ofEgress(OFFICE)).toEqual([]);
  });

  it("that the CNI plugin has buried behind the agent's back are forgotten, and stay buried", () => {
    const registry = loaded();
    registry.add(clientRecord());
    state.removeRecord(ID);
    registry.update(clientRecord({ egresses: [] }));
    registry.forgetBuried(ID);
    expect(registry.values()).toHaveLength(0);
    expect(state.tombstones()).toEqual(["10.244.0.5"]);
  });

  it.each(["{", "{}", '{"containerId":1}'])("are dropped when they hold %s", (content) => {
    loaded().add(clientRecord());
    const { runDirectory } = locationsIn(folder);
    writeFileSync(join(runDirectory, `clients/${ID}.json`), content);
    expect(loaded().values()).toHaveLength(0);
    expect(readdirSync(join(runDirectory, "clients"))).toEqual([]);
    expect(state.tombstones()).toEqual(["10.244.0.5"]);
  });

  it("are not taken from a file that was being written when its writer was killed", () => {
    loaded().add(clientRecord());
    writeFileSync(join(locationsIn(folder).runDirectory, "clients/.other.json.77"), '{"half":');
    expect(loaded().values()).toHaveLength(1);
  });
});

describe("what the version before has left, named for containers alone,", () => {
  const { network: _, ...record } = clientRecord();
  const locations = () => locationsIn(folder);

  beforeEach(() => {
    mkdirSync(join(locations().runDirectory, "clients"), { recursive: true });
    mkdirSync(join(locations().stateDirectory, "addresses"), { recursive: true });
    writeFileSync(join(locations().runDirectory, "clients/c0ffee.json"), JSON.stringify(record));
    writeFileSync(
      join(locations().stateDirectory, "addresses/10.244.0.5"),
      JSON.stringify({ address: "10.244.0.5", containerId: "c0ffee", egresses: [NAT] }),
    );
  });

  it("are clients and no tombstones", () => {
    const registry = loaded();
    expect(registry.values()).toEqual([record]);
    expect(registry.ofEgress(NAT)).toEqual([record]);
    expect(state.tombstones()).toEqual([]);
  });

  it("are kept up to date, over the next restart as well", () => {
    loaded().update({ ...record, egresses: [] });
    expect(loaded().values()).toEqual([{ ...record, egresses: [] }]);
    expect(readdirSync(join(locations().runDirectory, "clients"))).toEqual(["c0ffee.json"]);
  });

  it("end as any others do", () => {
    loaded().bury("c0ffee");
    expect(loaded().values()).toHaveLength(0);
    expect(state.tombstone("10.244.0.5")).toEqual({
      address: "10.244.0.5",
      record: "c0ffee",
      egresses: [NAT],
    });
  });
});

describe("the addresses of a client", () => {
  const addresses = ["10.244.0.5", "fd00:244::5"];

  it("are held from its beginning, and are no tombstones while it is there", () => {
    loaded().add(clientRecord({ addresses }));
    expect(state.trustedAddresses()).toEqual(addresses);
    expect(state.tombstones()).toEqual([]);
  });

  it("become tombstones when it ends", () => {
    loaded().add(clientRecord({ addresses }));
    loaded().bury(ID);
    expect(state.tombstones()).toEqual(addresses);
    expect(state.tombstone("10.244.0.5")).toMatchObject({ egresses: [NAT] });
    expect(loaded().values()).toHaveLength(0);
  });

  it("are tombstones after a reboot, which no pod outlives", () => {
    loaded().add(clientRecord({ addresses }));
    reboot();
    expect(loaded().values()).toHaveLength(0);
    expect(state.tombstones()).toEqual(addresses);
  });

  it("are held again when somebody has removed their files", () => {
    loaded().add(clientRecord());
    rmSync(locationsIn(folder).stateDirectory, { recursive: true });
    loaded();
    expect(state.isTrusted("10.244.0.5")).toBe(true);
  });
});

describe("a tombstone", () => {
  it("keeps its Egresses when a slice tells of others", () => {
    loaded().add(clientRecord());
    loaded().bury(ID);
    state.addTombstone("10.244.0.5", [NAT, OFFICE]);
    expect(state.tombstone("10.244.0.5")?.egresses).toEqual([NAT, OFFICE]);
  });

  it("of an address that only a slice tells of belongs to no container", () => {
    state.addTombstone("10.244.0.9", [OFFICE]);
    expect(state.tombstone("10.244.0.9")).toEqual({ address: "10.244.0.9", egresses: [OFFICE] });
    state.removeTrusted("10.244.0.9");
    expect(state.tombstones()).toEqual([]);
  });
});
