import { setImmediate as nextTurn } from "node:timers/promises";
import {
  CLUSTER_RANGES_CONFIG_MAP,
  clusterRangesData,
  EGRESS_RESOURCE,
  FOU_PORT,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import { EgressPod, Metrics } from "@egress-nat/egress-pod";
import { Gateway, GatewayWatch, kernelHere, liveFlows, prepareGatewayNetns } from "@egress-nat/founat";
import { CONFIG_MAP_RESOURCE, type Resource, resourcePath, type Transport } from "@egress-nat/kube";
import { createLogger, createRegistry } from "@egress-nat/program";
import { EGRESS, sliceObject } from "./slices.ts";

// Runs in a virtual machine, in the network namespace of a gateway: `node main.js BACKEND SLICES CLIENTS_PER_SLICE
// ROUNDS`.
// The gateway program itself, with an apiserver that answers from memory. Prints milliseconds as JSON.

const processStartMs = performance.now();

/** As much as an HTTPS connection hands out at a time. */
const CHUNK_BYTES = 16 * 1024;

const [natBackend, ...numbers] = process.argv.slice(2);
const [slices = 1, clientsPerSlice = 10, rounds = 1] = numbers.map(Number);

const egress = {
  metadata: { ...EGRESS, uid: "egress", generation: 1, resourceVersion: "1" },
  spec: { destinations: ["0.0.0.0/0"], fouSourcePortAuto: false, natBackend },
};
const clusterRanges = {
  metadata: { ...EGRESS, name: CLUSTER_RANGES_CONFIG_MAP, uid: "ranges", resourceVersion: "1" },
  data: clusterRangesData(["10.96.0.0/16"]),
};
const lists = new Map([
  [collection(CONFIG_MAP_RESOURCE), list([clusterRanges])],
  [collection(EGRESS_RESOURCE), list([egress])],
  [
    collection(SLICE_RESOURCE),
    list(Array.from({ length: slices }, (_, node) => sliceObject(node, clientsPerSlice))),
  ],
]);

let startedAt = Number.NaN;
let committed = Promise.withResolvers<number>();
let nextEvent = Promise.withResolvers<Buffer>();
/** Resolved while the watch waits for an event, done with the one before. */
let watching = Promise.withResolvers<void>();

const transport: Transport = {
  request: () => Promise.reject(new Error("the gateway only lists and watches")),
  close: () => undefined,
  stream: async ({ path, query }) => {
    if (query?.watch) return path === collection(SLICE_RESOURCE) ? events() : silence();
    return chunks(path);
  },
};

const logger = createLogger({ name: "bench", level: "warn" });
const kernel = kernelHere();
const pod = new EgressPod({
  egress: EGRESS,
  addresses: ["10.9.0.2"],
  drainSeconds: 300,
  clusterRangesNamespace: EGRESS.namespace,
  transport,
  createGateway: (config) => {
    const gateway = new Gateway(config, { kernel, logger });
    return {
      configure: (changed) => gateway.configure(changed),
      sync: (clients) => gateway.sync(clients).then(commit),
      update: (change) => gateway.update(change).then(commit),
      check: (where) => gateway.check(where),
      repair: () => gateway.repair(),
      drops: () => gateway.drops(),
      get transactions() {
        return gateway.transactions;
      },
    };
  },
  liveFlows: () => liveFlows(kernel),
  watchKernel: (watch, signal) => new GatewayWatch({ port: FOU_PORT, logger, ...watch }).run(signal),
  ping: async () => undefined,
  askUplinks: async () => new Set(),
  recordEvent: (_, { message }) => {
    throw new Error(message);
  },
  logger,
  metrics: new Metrics(createRegistry()),
});

await prepareGatewayNetns(kernel);
void pod.run(new AbortController().signal);
const intakeMs = await committed.promise;
const oneMoreMs: number[] = [];
for (let round = 1; round <= rounds; round += 1) {
  await watching.promise;
  const object = sliceObject(0, clientsPerSlice + round, 1 + round);
  const event = Buffer.from(`${JSON.stringify({ type: "MODIFIED", object })}\n`);
  committed = Promise.withResolvers();
  startedAt = performance.now();
  nextEvent.resolve(event);
  oneMoreMs.push(await committed.promise);
}
console.log(JSON.stringify({ processStartMs, intakeMs, oneMoreMs }));
process.exit();

function commit(): void {
  committed.resolve(performance.now() - startedAt);
}

async function* chunks(path: string): AsyncGenerator<Buffer> {
  const body = lists.get(path) ?? Buffer.alloc(0);
  if (path === collection(SLICE_RESOURCE)) startedAt = performance.now();
  for (let at = 0; at < body.length; at += CHUNK_BYTES) {
    // As a socket does: between two chunks the program sees to whatever else has happened.
    await nextTurn();
    yield body.subarray(at, at + CHUNK_BYTES);
  }
}

async function* events(): AsyncGenerator<Buffer> {
  for (;;) {
    watching.resolve();
    const event = await nextEvent.promise;
    nextEvent = Promise.withResolvers();
    watching = Promise.withResolvers();
    yield event;
  }
}

async function* silence(): AsyncGenerator<Buffer> {
  await new Promise(() => undefined);
}

function list(items: readonly object[]): Buffer {
  return Buffer.from(JSON.stringify({ metadata: { resourceVersion: "1" }, items }));
}

function collection(resource: Resource): string {
  return resourcePath(resource, { namespace: EGRESS.namespace });
}
