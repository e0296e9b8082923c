import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clientRecord } from "../testing/client-record.ts";
import { failReads } from "../testing/failing-reads.ts";
import { locationsIn } from "../testing/locations.ts";
import { NodeState } from "./node-state.ts";
import { recordId } from "./record-id.ts";

const ADDRESS = "10.244.0.5";
const NAT = { namespace: "internet", name: "nat" };
const ID = recordId(clientRecord());

let folder: string;
let state: NodeState;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-state-"));
  state = new NodeState(locationsIn(folder), createLogger({ name: "test", level: "silent" }));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("a file that cannot be read now", () => {
  beforeEach(() => {
    state.writeRecord(clientRecord());
    state.writeTrusted({ address: ADDRESS, record: ID, egresses: [NAT] });
    failReads("readFileSync");
  });

  it("of a client is not taken for one that says nothing", () => {
    expect(() => state.readClient(ID)).toThrow("EMFILE");
  });

  it("of an address is not taken for the tombstone of nobody, but may be one", () => {
    expect(() => state.tombstone(ADDRESS)).toThrow("EMFILE");
    expect(state.tombstones()).toEqual([ADDRESS]);
  });

  it("of an address keeps its Egresses when a slice tells of others", () => {
    expect(() => state.addTombstone(ADDRESS, [{ namespace: "internet", name: "office" }])).toThrow("EMFILE");
  });
});

it("the file of an address that says it all is not written again: the disk may be full when the agent starts", () => {
  state.addTombstone(ADDRESS, [NAT]);
  const file = join(locationsIn(folder).stateDirectory, "addresses", ADDRESS);
  const { ino } = statSync(file);
  state.addTombstone(ADDRESS, [NAT]);
  expect(statSync(file).ino).toBe(ino);
});

it("a record that the CNI plugin removes while it is looked for is none", () => {
  expect(state.readClient(ID)).toBeUndefined();
});

it.each(["{", "{}"])("the file of an address that holds %s is the tombstone of nobody", (content) => {
  const file = join(locationsIn(folder).stateDirectory, "addresses", ADDRESS);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  expect(state.tombstone(ADDRESS)).toEqual({ address: ADDRESS, egresses: [] });
});
