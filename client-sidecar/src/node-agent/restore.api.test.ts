import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import {
  CLUSTER_RANGES_CONFIG_MAP,
  clusterRangesData,
  EgressClientSlice,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import {
  CONFIG_MAP_RESOURCE,
  createTransport,
  loadCredentials,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import { createNamespace } from "@egress-nat/kube/testing/namespace";
import { createLogger } from "@egress-nat/program";
import { apiserver, etcd } from "@egress-nat/test/bed/api/apiserver";
import { afterEach, beforeEach, expect, inject, test, vi } from "vitest";
import type { AgentRequest } from "../cni/protocol.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { addRequest } from "../testing/add-request.ts";
import { agentInFolder } from "../testing/agent-in-folder.ts";
import { FakeGateways } from "../testing/fake-gateways.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { runInBackground } from "../testing/in-background.ts";
import { locationsIn } from "../testing/locations.ts";
import { createObject, createServedEgress, patchObject } from "../testing/served-egress.ts";

const GATEWAY = "198.51.100.1";
const NODE = "node-1";

const logger = createLogger({ name: "test", level: "silent" });

let transport: Transport;
let namespace: string;
let folder: string;
let gateways: FakeGateways;
let stop: () => Promise<void>;

beforeEach(async () => {
  transport = createTransport({
    credentials: await loadCredentials({ kubeconfig: inject("kubeconfig") }),
    logger,
  });
  namespace = await createNamespace(transport, "restore");
  folder = mkdtempSync(join(tmpdir(), "egress-nat-restore-"));
  await createObject({ transport, namespace }, CONFIG_MAP_RESOURCE, {
    metadata: { namespace, name: CLUSTER_RANGES_CONFIG_MAP },
    data: clusterRangesData(["10.96.0.0/16"]),
  });
  await createServedEgress({ transport, namespace }, "nat", [GATEWAY]);
  gateways = new FakeGateways();
  await gateways.start(transport, namespace, logger);
  const gatewayPort = await gateways.add(GATEWAY);
  const agent = agentInFolder(
    { nodeName: NODE, folder, namespace, gatewayPort },
    transport,
    new FakeNetworks(),
  );
  stop = runInBackground(agent);
  await vi.waitFor(() => expect(agent.check.ok).toBe(true));
});

afterEach(async () => {
  await stop();
  await gateways.close();
  transport.close();
  rmSync(folder, { recursive: true });
});

test("after etcd was restored from a backup a slice names the clients of now, and none that has ended since", async () => {
  const [ended, added] = [request("ended", "10.244.0.1"), request("added", "10.244.0.2")];
  await ask(ended);
  await etcd.backUp();
  await vi.waitFor(() => ask(added));
  await passTime();
  await ask({ operation: "delete", records: [recordId(ended)] });
  await vi.waitFor(() => expect(new NodeState(locationsIn(folder), logger).tombstones()).toEqual([]));
  const { metadata } = await slice();
  try {
    await apiserver.kill();
    await etcd.restore();
  } finally {
    await apiserver.start();
  }
  await vi.waitFor(async () => {
    const restored = await slice();
    expect(restored.metadata.generation).toBeLessThan(metadata.generation);
    expect(restored.clients).toMatchObject([{ name: "added" }]);
  }, 60_000);
});

function request(name: string, address: string) {
  return addRequest({
    ...{ containerId: name, netns: join(folder, name), addresses: [address] },
    pod: { namespace: "apps", name, uid: `uid-${name}` },
    annotations: { [`egress.coil.cybozu.com/${namespace}`]: "nat" },
  });
}

/** @throws AssertionError where the agent does not do it */
async function ask(what: AgentRequest): Promise<void> {
  const socket = connect(join(locationsIn(folder).runDirectory, "agent.sock"));
  socket.write(`${JSON.stringify(what)}\n`);
  expect(JSON.parse(await text(socket))).toEqual({ ok: true });
}

/** The API gets further than an apiserver does by itself that starts with the backup. */
async function passTime(): Promise<void> {
  for (let i = 0; i < 200; i += 1) {
    const metadata = { annotations: { "example.com/count": String(i) } };
    await patchObject({ transport, namespace }, CONFIG_MAP_RESOURCE, CLUSTER_RANGES_CONFIG_MAP, { metadata });
  }
}

function slice(): Promise<EgressClientSlice> {
  const slices = new ResourceClient(transport, SLICE_RESOURCE, (raw) => EgressClientSlice.parse(raw));
  return slices.get({ namespace, name: `nat.${NODE}` });
}
