import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Answer } from "../gateways/health.ts";
import type { Gateway } from "../gateways/view.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { clientRecord } from "../testing/client-record.ts";
import { gateway } from "../testing/gateway.ts";
import { locationsIn } from "../testing/locations.ts";
import { ClientRegistry } from "./registry.ts";
import { Withdrawals } from "./withdrawals.ts";

const ADDRESS = "10.244.0.5";
const GATEWAY = gateway({ addresses: ["192.0.2.1"], ready: false, serving: false });
const EVENTUALLY = { timeout: 30_000 };

const logger = createLogger({ name: "test", level: "silent" });

let folder: string;
let state: NodeState;
let registry: ClientRegistry;
let gateways: Gateway[];
let knowsGateways: boolean;
let answer: Answer;
/** Who was a client whenever the slice was written. */
let written: string[][];
let ended: AbortController;
let running: Promise<void>;
let withdrawals: Withdrawals;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-withdrawals-"));
  state = new NodeState(locationsIn(folder), logger);
  registry = new ClientRegistry(state);
  [gateways, knowsGateways, answer, written] = [[GATEWAY], true, "silent", []];
  withdrawals = new Withdrawals({
    ...{ state, registry, logger },
    slices: {
      write: async () => {
        written.push(registry.values().map(({ containerId }) => containerId));
        return { uid: "slice", generation: 2 };
      },
    },
    view: { gateways: () => gateways, knowsGateways: () => knowsGateways },
    ask: async () => answer,
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

it("the address of a client is not withdrawn", async () => {
  registry.add(clientRecord());
  answer = "applied";
  await withdrawals.withdraw([ADDRESS], 1_000);
  withdrawals.scan();
  expect(written).toEqual([]);
  expect(state.isTrusted(ADDRESS)).toBe(true);
});
