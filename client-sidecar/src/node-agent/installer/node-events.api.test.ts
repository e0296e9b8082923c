import { createTransport, EventRecorder, loadCredentials, type Transport } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { nodeEvents } from "./node-events.ts";

const logger = createLogger({ name: "test", level: "silent" });
const NODE = "node-events-1";

let transport: Transport;

beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger });
});

afterAll(() => transport.close());

test("what is said of a node is where kubectl describe looks for it: by the node's name as UID", async () => {
  const recorder = new EventRecorder({
    transport,
    component: "example.com/test",
    instance: "agent-1",
    logger,
  });
  const recordEvent = nodeEvents(recorder, NODE);
  recordEvent({ type: "Warning", reason: "CniPluginNotInstalled", message: "cannot add the plugin" });
  await recorder.close();
  const { items } = (await transport.request({
    method: "GET",
    path: "/api/v1/namespaces/default/events",
    query: {
      fieldSelector: `involvedObject.kind=Node,involvedObject.name=${NODE},involvedObject.uid=${NODE}`,
    },
  })) as { items: unknown[] };
  expect(items).toMatchObject([{ reason: "CniPluginNotInstalled", message: "cannot add the plugin" }]);
});
