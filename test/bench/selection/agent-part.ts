import type { ClientConfig } from "@egress-nat/founat";
import { inParallel } from "../in-parallel.ts";
import { clientInNetns } from "../native/clients.ts";
import { type Gateway, gatewayAt, SteeredClients } from "../native/steered-clients.ts";

// `node main.js CLIENTS ROUNDS`: the part of a node agent that leads flows, and so many clients for it. Prints JSON.

/** As many clients as an agent looks at in a time. */
const LOOKS_AT_ONCE = 4;

const [count = 1, rounds = 1] = process.argv.slice(2).map(Number);
const [first, ...others] = Array.from({ length: 16 }, (_, index) => gatewayAt(index + 1)) as [
  Gateway,
  ...Gateway[],
];
let gateways: readonly Gateway[] = [first, ...others];
const configs = new Map<string, ClientConfig>();
/** Those that have followed the last change. */
const followed = new Set<string>();
let allSteered = Promise.withResolvers<void>();
const clients = new SteeredClients(
  count,
  () => gateways,
  (netns, config, isChanged) => {
    if (!isChanged) throw new Error(`nothing was done in ${netns}`);
    configs.set(netns, config);
    followed.add(netns);
    if (followed.size === count) allSteered.resolve();
  },
);

await clients.during(async () => {
  await change(gateways);
  const steeredMs: number[] = [];
  const endedMs: number[] = [];
  const lookedAtMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    steeredMs.push(await change([{ ...first, pulse: "suspect" }, ...others]));
    endedMs.push(await change([{ ...first, pulse: "dead" }, ...others]));
    await change([first, ...others]);
    lookedAtMs.push(await lookAtAll());
  }
  console.log(JSON.stringify({ steeredMs, endedMs, lookedAtMs }));
});

/** @returns how long it takes until the last client follows, in milliseconds */
async function change(to: readonly Gateway[]): Promise<number> {
  gateways = to;
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
