import {
  createTransport,
  loadCredentials,
  NODE_RESOURCE,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
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

const taints = async () => (await nodes.get({ name: nodeName })).spec.taints;

test("a node keeps its startup taint until it is ready for clients, and its other taints after that", async () => {
  const before = await taints();
  expect(before.map(({ key }) => key)).toContain(KEY);
  let looks = 0;
  const ready = () => {
    looks += 1;
    return { ok: looks > 2, reasons: [] };
  };
  const removed = removeStartupTaint(
    { nodes, nodeName, key: KEY, ready, logger },
    new AbortController().signal,
  );
  expect(await taints()).toEqual(before);
  await removed;
  expect(await taints()).toEqual(before.filter(({ key }) => key !== KEY));
  expect(await taints()).toContainEqual(OTHER);
});

test("a node without the taint is left as it is", async () => {
  const before = await nodes.get({ name: nodeName });
  const ready = () => ({ ok: true, reasons: [] });
  await removeStartupTaint({ nodes, nodeName, key: KEY, ready, logger }, new AbortController().signal);
  expect((await nodes.get({ name: nodeName })).metadata).toEqual(before.metadata);
});
