import {
  createTransport,
  loadCredentials,
  NODE_RESOURCE,
  ResourceClient,
  systemClock,
  type Transport,
} from "@egress-nat/kube";
import { type Check, createLogger } from "@egress-nat/program";
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from "vitest";
import { runInBackground } from "../testing/in-background.ts";
import { removeStartupTaint, TaintedNode } from "./startup-taint.ts";

const KEY = "example.com/not-ready";
const OTHER = { key: "example.com/dedicated", value: "db", effect: "NoSchedule" };

const logger = createLogger({ name: "test", level: "silent" });
const nodeName = "startup-taint";
let transport: Transport;
let nodes: ResourceClient<TaintedNode>;

beforeAll(async () => {
  transport = createTransport({
    credentials: await loadCredentials({ kubeconfig: inject("kubeconfig") }),
    logger,
  });
  nodes = new ResourceClient(transport, NODE_RESOURCE, (raw) => TaintedNode.parse(raw));
  const taints = [{ key: KEY, effect: "NoSchedule" }, OTHER];
  await nodes.create({ metadata: { name: nodeName }, spec: { taints } });
});

afterAll(async () => {
  await nodes.delete({ name: nodeName });
  transport.close();
});

/** Until the end of the test, sixty times as fast. */
function start(ready: () => Check): void {
  const clock = {
    ...systemClock,
    after: (delayMs: number, callback: () => void) => systemClock.after(delayMs / 60, callback),
  };
  const options = { nodes, nodeName, key: KEY, ready, logger, clock };
  const run = (signal: AbortSignal) => removeStartupTaint(options, signal);
  onTestFinished(runInBackground({ run }));
}

const taints = async () => (await nodes.get({ name: nodeName })).spec.taints;

test("a node keeps its startup taint until it is ready for clients, and its other taints after that", async () => {
  const before = await taints();
  expect(before.map(({ key }) => key)).toContain(KEY);
  let looks = 0;
  const ready = () => {
    looks += 1;
    return { ok: looks > 2, reasons: [] };
  };
  start(ready);
  expect(await taints()).toEqual(before);
  await vi.waitFor(async () => expect(await taints()).toEqual(before.filter(({ key }) => key !== KEY)));
  expect(await taints()).toContainEqual(OTHER);
});

test("a node without the taint is left as it is", async () => {
  const before = await nodes.get({ name: nodeName });
  const looked = vi.spyOn(nodes, "get");
  start(() => ({ ok: true, reasons: [] }));
  await vi.waitFor(() => expect(looked).toHaveBeenCalledTimes(2));
  expect((await nodes.get({ name: nodeName })).metadata).toEqual(before.metadata);
});
