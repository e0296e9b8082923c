import { Steerer, type SteererOptions } from "@egress-nat/client-sidecar";
import type { ClientConfig, KnownClient } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { inParallel } from "../in-parallel.ts";
import { clientIn, clientNames, netnsPath, withPodNetworks } from "../native/clients.ts";

// `node main.js CLIENTS ROUNDS`: the part of a node agent that leads flows, and so many clients for it. Prints JSON.

/** As many clients as an agent looks at in a time. */
const LOOKS_AT_ONCE = 4;

const NAT = { namespace: "bench", name: "bench" };
const SPEC = {
  ...{ destinations: ["0.0.0.0/0", "::/0"], excludedDestinations: [], originatingOnly: true },
  fouSourcePortAuto: false,
  gatewaySelection: "Agent",
  sessionAffinity: "None",
} as const;

type Registry = SteererOptions["registry"];
type View = SteererOptions["view"];
type Gateway = ReturnType<View["gateways"]>[number];

const [clients = 1, rounds = 1] = process.argv.slice(2).map(Number);
const names = clientNames(clients);
const records: readonly NonNullable<ReturnType<Registry["get"]>>[] = names.map((name) => ({
  ...{ network: "pods", containerId: name, netns: netnsPath(name), ifname: "eth0", addresses: [] },
  ...{ pod: { namespace: "bench", name, uid: name }, addedAt: "2026-01-01T00:00:00.000Z" },
  egresses: [{ ...NAT, ...SPEC }],
}));
let gateways: readonly Gateway[] = Array.from({ length: 16 }, (_, index) => ({
  ...{ name: `gateway-${index}`, addresses: [`10.244.2.${index + 1}`, `fd00:244:2::${index + 1}`] },
  ...{ ready: true, serving: true, terminating: false, pulse: "alive" },
}));
const view = {
  egress: () => ({ metadata: NAT, spec: SPEC, status: { serviceIPs: ["10.96.0.10", "fd00:96::10"] } }),
  gateways: () => gateways,
  vanishedGateways: () => [],
  knowsGateways: () => true,
  hasEgressIn: () => true,
  place: { nodeName: "node", zone: undefined },
  clusterRanges: ["10.244.0.0/16", "10.96.0.0/16", "fd00:244::/48", "fd00:96::/112"],
} as unknown as View;

const known = new Map<string, KnownClient>();
const configs = new Map<string, ClientConfig>();
const nameOf = (netns: string) => names.find((name) => netnsPath(name) === netns) ?? "";
/** Those that have followed the last change. */
const followed = new Set<string>();
let allSteered = Promise.withResolvers<void>();
const steerer = new Steerer({
  registry: {
    get: (id) => records.find((record) => id.startsWith(`${record.containerId}:`)),
    isOwner: () => true,
  },
  view,
  networks: { steer },
  reapplier: { reapply: () => undefined, expectChanges: () => undefined },
  logger: createLogger({ name: "bench", level: "debug" }),
});

const ended = new AbortController();
const running = steerer.run(ended.signal);
await withPodNetworks(names, async () => {
  const all = gateways;
  const [first, ...others] = gateways;
  if (first === undefined) throw new Error("there is no gateway");
  await change(all);
  const steeredMs: number[] = [];
  const endedMs: number[] = [];
  const lookedAtMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    steeredMs.push(await change([{ ...first, pulse: "suspect" }, ...others]));
    endedMs.push(await change([{ ...first, pulse: "dead" }, ...others]));
    await change(all);
    lookedAtMs.push(await lookAtAll());
  }
  console.log(JSON.stringify({ steeredMs, endedMs, lookedAtMs }));
});
ended.abort();
await running;

/** Makes it a client the first time. */
async function steer(netns: string, config: ClientConfig): Promise<boolean> {
  configs.set(netns, config);
  const before = known.get(netns);
  const client = clientIn(nameOf(netns));
  const after =
    before === undefined ? (await client.repair(config)).known : await client.steer(config, before);
  if (after === undefined || after === before) throw new Error(`nothing was done in ${netns}`);
  known.set(netns, after);
  followed.add(netns);
  if (followed.size === clients) allSteered.resolve();
  return true;
}

/** @returns how long it takes until the last client follows, in milliseconds */
async function change(to: readonly Gateway[]): Promise<number> {
  gateways = to;
  followed.clear();
  allSteered = Promise.withResolvers();
  const startedAt = performance.now();
  steerer.steer(records);
  await allSteered.promise;
  return performance.now() - startedAt;
}

async function lookAtAll(): Promise<number> {
  const startedAt = performance.now();
  await inParallel(LOOKS_AT_ONCE, [...configs], ([netns, config]) => clientIn(nameOf(netns)).check(config));
  return performance.now() - startedAt;
}
