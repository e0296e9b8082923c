import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Answer, SliceVersion } from "../gateways/health.ts";
import type { Gateway } from "../gateways/view.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { SliceWriter } from "../slices/writer.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { failReads } from "../testing/failing-reads.ts";
import { FakeSliceApi } from "../testing/fake-slice-api.ts";
import { gateway } from "../testing/gateway.ts";
import { locationsIn } from "../testing/locations.ts";
import type { Slices } from "./announcement.ts";
import { ClientRegistry } from "./registry.ts";
import { Withdrawals } from "./withdrawals.ts";

const ADDRESS = "10.244.0.5";
const NAT = { namespace: "internet", name: "nat" };
const GATEWAY = gateway({ addresses: ["192.0.2.1"], ready: false, serving: false });
/** The name of a gateway that has let go of everybody. */
const QUICK = "quick";
const EVENTUALLY = { timeout: 30_000 };

const logger = createLogger({ name: "test", level: "silent" });

let folder: string;
let state: NodeState;
let registry: ClientRegistry;
let gateways: Gateway[];
let knowsGateways: boolean;
let answer: Answer;
/** The versions that gateways were asked for. */
let asked: SliceVersion[];
let askedNames: string[];
let slices: Slices;
/** Who was a client whenever the slice was written. */
let written: string[][];
let ended: AbortController;
let running: Promise<void>;
let withdrawals: Withdrawals;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-withdrawals-"));
  state = new NodeState(locationsIn(folder), logger);
  registry = new ClientRegistry(state);
  [gateways, knowsGateways, answer, written, asked] = [[GATEWAY], true, "silent", [], []];
  askedNames = [];
  slices = {
    write: async () => {
      written.push(registry.values().map(({ containerId }) => containerId));
      return { uid: "slice", generation: 2 };
    },
  };
  withdrawals = new Withdrawals({
    ...{ state, registry, logger },
    slices: { write: (reference) => slices.write(reference) },
    view: { gateways: () => gateways, knowsGateways: () => knowsGateways },
    ask: async ({ name }, version) => {
      asked.push(version);
      askedNames.push(name);
      return name === QUICK ? "applied" : answer;
    },
  });
  ended = new AbortController();
  running = withdrawals.run(ended.signal);
});

afterEach(async () => {
  ended.abort();
  await running;
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

describe("the address of a client that has ended", () => {
  beforeEach(() => {
    registry.add(clientRecord());
    state.removeRecord(recordId(clientRecord())); // by the CNI plugin: the agent has not heard of it
  });

  it("waits for a gateway whose program is down, which the log names, and is free when that has let go", async () => {
    const warned = vi.spyOn(logger, "warn");
    withdrawals.scan();
    await vi.waitFor(() => expect(warned).toHaveBeenCalledOnce(), EVENTUALLY);
    expect(warned.mock.calls[0]?.[0]).toMatchObject({
      address: ADDRESS,
      err: { message: "gateways may still trust it: internet/nat-1" },
    });
    expect(state.tombstones()).toEqual([ADDRESS]);
    answer = "applied";
    await vi.waitFor(() => expect(state.isTrusted(ADDRESS)).toBe(false), EVENTUALLY);
  });

  it("is asked for once of a gateway that has let go, and again of one that has not", async () => {
    gateways = [GATEWAY, { ...GATEWAY, name: QUICK }];
    withdrawals.scan();
    await vi.waitFor(() => expect(askedNames.length).toBeGreaterThan(5), EVENTUALLY);
    expect(written).toHaveLength(1);
    expect(askedNames.filter((name) => name === QUICK)).toHaveLength(1);
  });

  it("is free when the pod of that gateway is gone", async () => {
    withdrawals.scan();
    await vi.waitFor(() => expect(written).not.toEqual([]), EVENTUALLY);
    expect(state.isTrusted(ADDRESS)).toBe(true);
    gateways = [];
    await vi.waitFor(() => expect(state.isTrusted(ADDRESS)).toBe(false), EVENTUALLY);
  });

  it("waits while it is not known which gateways there are, which the log says", async () => {
    const warned = vi.spyOn(logger, "warn");
    [gateways, knowsGateways] = [[], false];
    withdrawals.scan();
    await vi.waitFor(() => expect(warned).toHaveBeenCalledOnce(), EVENTUALLY);
    expect(warned.mock.calls[0]?.[0]).toMatchObject({
      address: ADDRESS,
      err: { message: "gateways may still trust it: any of Egress internet/nat, whose Service is not known" },
    });
    expect(state.isTrusted(ADDRESS)).toBe(true);
    knowsGateways = true;
    await vi.waitFor(() => expect(state.isTrusted(ADDRESS)).toBe(false), EVENTUALLY);
  });

  it("is in no slice that is written from then on", async () => {
    answer = "applied";
    withdrawals.scan();
    await vi.waitFor(() => expect(state.isTrusted(ADDRESS)).toBe(false), EVENTUALLY);
    expect(written).toEqual([[]]);
  });
});

it("the address of a former client waits for the gateways of an Egress, though nobody knows its slice any more", async () => {
  const api = new FakeSliceApi();
  slices = new SliceWriter({
    client: api,
    nodeName: "node-1",
    registry,
    view: { egress: () => egress(), gateways: () => gateways },
    reports: () => [],
    seen: () => undefined,
  });
  state.addTombstone(ADDRESS, [NAT]);
  withdrawals.scan();
  await vi.waitFor(() => expect(asked).not.toEqual([]), EVENTUALLY);
  expect(asked[0]).toEqual({ uid: "uid-1", generation: 1 });
  expect(state.tombstones()).toEqual([ADDRESS]);
  answer = "applied";
  await vi.waitFor(() => expect(state.isTrusted(ADDRESS)).toBe(false), EVENTUALLY);
  expect(api.slice?.clients).toEqual([]);
});

describe("while the process has too many files open", () => {
  const moment = () => new Promise((resolve) => setTimeout(resolve, 300));

  it("the address of a client stays its own", async () => {
    registry.add(clientRecord());
    const stopFailing = failReads("readFileSync");
    withdrawals.scan();
    await moment();
    stopFailing();
    withdrawals.scan();
    await moment();
    expect(state.isTrusted(ADDRESS)).toBe(true);
  });

  it("that of one that ends waits, and is free after that", async () => {
    answer = "applied";
    registry.add(clientRecord());
    registry.bury(recordId(clientRecord()));
    const stopFailing = failReads("readFileSync");
    await withdrawals.withdraw([ADDRESS], 300);
    expect(state.isTrusted(ADDRESS)).toBe(true);
    stopFailing();
    await vi.waitFor(() => expect(state.isTrusted(ADDRESS)).toBe(false), EVENTUALLY);
    expect(asked).toHaveLength(1);
  });

  it("nobody who has addresses looked for is disturbed, and the log says so", () => {
    const warned = vi.spyOn(logger, "warn");
    failReads("readdirSync");
    withdrawals.scan();
    expect(warned).toHaveBeenCalledOnce();
  });
});

it.each(["{", "{}"])("the address of a client whose file holds %s stays its own", async (content) => {
  registry.add(clientRecord());
  const file = join(locationsIn(folder).stateDirectory, "addresses", ADDRESS);
  const before = readFileSync(file, "utf8");
  writeFileSync(file, content);
  withdrawals.scan();
  await vi.waitFor(() => expect(readFileSync(file, "utf8")).toBe(before), EVENTUALLY);
  expect(state.tombstones()).toEqual([]);
});

it("the address of a client is not withdrawn", async () => {
  registry.add(clientRecord());
  answer = "applied";
  await withdrawals.withdraw([ADDRESS], 1_000);
  withdrawals.scan();
  expect(written).toEqual([]);
  expect(state.isTrusted(ADDRESS)).toBe(true);
});
