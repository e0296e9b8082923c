import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { SLICE_RESOURCE } from "@egress-nat/crds";
import { resourcePath } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ClientRegistry } from "../client/registry.ts";
import { CniErrorCode } from "../cni/error.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { desiredSlice } from "../slices/desired.ts";
import { addRequest } from "../testing/add-request.ts";
import { agentInFolder } from "../testing/agent-in-folder.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { failReads } from "../testing/failing-reads.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { runInBackground } from "../testing/in-background.ts";
import { locationsIn } from "../testing/locations.ts";
import { MuteApi } from "../testing/mute-api.ts";
import type { Agent } from "./agent.ts";

const NODE = "node-1";
const ADDRESS = "10.244.0.9";
const NAT = { namespace: "internet", name: "nat" };

let folder: string;
let api: MuteApi;
let agent: Agent;
let stop: () => Promise<void>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-agent-"));
  api = new MuteApi();
});

afterEach(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

function start(): void {
  const node = { nodeName: NODE, folder, namespace: "internet", gatewayPort: 9 };
  agent = agentInFolder(node, api, new FakeNetworks());
  stop = runInBackground(agent);
}

async function add(): Promise<unknown> {
  const socket = connect(join(locationsIn(folder).runDirectory, "agent.sock"));
  socket.write(`${JSON.stringify(addRequest())}\n`);
  return JSON.parse(await text(socket));
}

describe("an agent that cannot read the state of its node yet", () => {
  const moment = () => new Promise((resolve) => setTimeout(resolve, 300));
  let state: NodeState;

  beforeEach(() => {
    state = new NodeState(locationsIn(folder), createLogger({ name: "test", level: "silent" }));
  });

  test("forgets no client", async () => {
    new ClientRegistry(state).add(clientRecord());
    const stopFailing = failReads("readFileSync");
    start();
    await moment();
    expect(agent.check.ok).toBe(false);
    stopFailing();
    await vi.waitFor(() => expect(api.applied).toMatchObject([{ clients: [{ name: "web" }] }]));
    expect(state.recordIds()).toEqual([recordId(clientRecord())]);
  });

  test("forgets no Egress of a tombstone", async () => {
    const office = { namespace: "internet", name: "office" };
    state.addTombstone(ADDRESS, [office]);
    const pod = { namespace: "apps", name: "web", uid: "u-1" };
    const client = { ...pod, addresses: [ADDRESS], addedAt: "2026-01-01T00:00:00.000Z" };
    const { metadata, ...slice } = desiredSlice(egress(), NODE, [client], []);
    api.slices.push({ ...slice, metadata: { ...metadata, uid: "slice", generation: 1 } });
    const stopFailing = failReads("readFileSync");
    start();
    await moment();
    expect(agent.check.ok).toBe(false);
    stopFailing();
    await vi.waitFor(() => expect(state.tombstone(ADDRESS)?.egresses).toEqual([office, NAT]));
  });
});

test("an ADD is to be tried again where it cannot be told whether its address is free", async () => {
  const addresses = join(locationsIn(folder).stateDirectory, "addresses");
  mkdirSync(addresses, { recursive: true });
  symlinkSync("10.244.0.5", join(addresses, "10.244.0.5")); // ELOOP, also of stat(2)
  start();
  await vi.waitFor(() => expect(agent.check.ok).toBe(true));
  expect(await add()).toMatchObject({ ok: false, code: CniErrorCode.tryAgainLater });
  expect(api.applied).toEqual([]);
});

test("a slice that was written right before etcd was restored, and never seen, is written again", async () => {
  start();
  await vi.waitFor(() => expect(agent.check.ok).toBe(true));
  expect(await add()).toEqual({ ok: true });
  expect(api.applied).toHaveLength(1);
  api.leave();
  await vi.waitFor(() => expect([...api.refused]).toContain(resourcePath(SLICE_RESOURCE)));
  expect(api.applied).toHaveLength(1);
  api.comeBackEarlier();
  await vi.waitFor(() => expect(api.applied).toHaveLength(2));
  expect(api.applied[1]).toEqual(api.applied[0]);
});
