import { inParallel } from "../in-parallel.ts";
import { clientInNetns } from "../native/clients.ts";
import { type Gateway, gatewayAt } from "../native/egress-stores.ts";
import { type Pulse, SteeredClients, type Use } from "../native/steered-clients.ts";

// `node main.js CLIENTS ROUNDS`: the part of a node agent that leads flows, and so many clients for it. Prints JSON.

/** As many clients as an agent looks at in a time. */
const LOOKS_AT_ONCE = 4;

const [count = 1, rounds = 1] = process.argv.slice(2).map(Number);
const others = Array.from({ length: 15 }, (_, index) => gatewayAt(index + 1));
/** Of concern to all clients, as each of the others is. */
const gateway = gatewayAt(16);
let pulse: ReturnType<Pulse> = "alive";
const clients = new SteeredClients(count, [...others, gateway], (address) =>
  gateway.addresses.includes(address) ? pulse : "alive",
);

await clients.during(async () => {
  const drainsMs: number[] = [];
  const suspectMs: number[] = [];
  const deadMs: number[] = [];
  const lookedAtMs: number[] = [];
  clients.takeChanged();
  for (let round = 0; round < rounds; round += 1) {
    drainsMs.push(await timeOf(() => clients.tellOf([...others, draining(gateway)]), beginsNot));
    await timeOf(() => clients.tellOf([...others, gateway]), begins);
    suspectMs.push(await timeOf(() => hear("suspect"), beginsNot));
    deadMs.push(await timeOf(() => hear("dead"), isGone));
    await timeOf(() => hear("alive"), begins);
    lookedAtMs.push(await lookAtAll());
  }
  console.log(JSON.stringify({ drainsMs, suspectMs, deadMs, lookedAtMs }));
});

/** @returns how long it takes until the gateway is used like that by the last client, in milliseconds */
async function timeOf(change: () => void, isTrue: (use: Use) => boolean): Promise<number> {
  const startedAt = performance.now();
  change();
  await clients.until(gateway, isTrue);
  const tookMs = performance.now() - startedAt;
  if (clients.takeChanged() < count) throw new Error("clients follow, and nothing was done for some of them");
  return tookMs;
}

function hear(heard: typeof pulse): void {
  pulse = heard;
  clients.steer();
}

function begins(use: Use): boolean {
  return use === "new";
}

function beginsNot(use: Use): boolean {
  return use !== "new";
}

function isGone(use: Use): boolean {
  return use === undefined;
}

function draining(it: Gateway): Gateway {
  return { ...it, isTerminating: true };
}

async function lookAtAll(): Promise<number> {
  const startedAt = performance.now();
  await inParallel(LOOKS_AT_ONCE, [...clients.configs], ([netns, config]) =>
    clientInNetns(netns).check(config),
  );
  return performance.now() - startedAt;
}
