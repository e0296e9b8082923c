import type { ClientConfig } from "@egress-nat/founat";
import { inParallel } from "../in-parallel.ts";
import { clientInNetns } from "../native/clients.ts";
import { gatewayAt, SteeredClients } from "../native/steered-clients.ts";

// `node main.js CLIENTS ROUNDS`: the part of a node agent that leads flows, and so many clients for it. Prints JSON.

/** As many clients as an agent looks at in a time. */
const LOOKS_AT_ONCE = 4;

const [count = 1, rounds = 1] = process.argv.slice(2).map(Number);
const gateways = Array.from({ length: 16 }, (_, index) => gatewayAt(index + 1));
const [first] = gateways;
type Pulse = "alive" | "suspect" | "dead";
/** Of the first gateway. */
let pulse: Pulse = "alive";
const configs = new Map<string, ClientConfig>();
/** Those that have followed the last change. */
const followed = new Set<string>();
let allSteered = Promise.withResolvers<void>();
const clients = new SteeredClients(
  count,
  gateways,
  (address) => (first?.addresses.includes(address) ? pulse : "alive"),
  (netns, config, isChanged) => {
    if (!isChanged) throw new Error(`nothing was done in ${netns}`);
    configs.set(netns, config);
    followed.add(netns);
    if (followed.size === count) allSteered.resolve();
  },
);

await clients.during(async () => {
  await change("alive");
  const steeredMs: number[] = [];
  const endedMs: number[] = [];
  const lookedAtMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    steeredMs.push(await change("suspect"));
    endedMs.push(await change("dead"));
    await change("alive");
    lookedAtMs.push(await lookAtAll());
  }
  console.log(JSON.stringify({ steeredMs, endedMs, lookedAtMs }));
});

/** @returns how long it takes until the last client follows, in milliseconds */
async function change(to: Pulse): Promise<number> {
  pulse = to;
  followed.clear();
  allSteered = Promise.withResolvers();
  const startedAt = performance.now();
  clients.steer();
  await allSteered.promise;
  return performance.now() - startedAt;
}

async function lookAtAll(): Promise<number> {
  const startedAt = performance.now();
  await inParallel(LOOKS_AT_ONCE, [...configs], ([netns, config]) => clientInNetns(netns).check(config));
  return performance.now() - startedAt;
}
