import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { GatewayClient, GatewayConfig } from "../gateway/config.ts";
import { Gateway, type Suspicion } from "../gateway/gateway.ts";
import { GatewayWatch } from "../gateway/watch.ts";
import { kernelHere } from "../kernel/kernel.ts";

// Runs in a gateway's network namespace: `node drifting-gateway.mjs JSON`. Watches it as the gateway program does while
// somebody takes one thing after another away, and prints as JSON what became of each.

export interface DriftInput {
  readonly config: GatewayConfig;
  readonly clients: readonly GatewayClient[];
  /** How long what was found stays as it is before it is repaired, in milliseconds: time for packets to go astray. */
  readonly holdMs: number;
  /** Shell commands, each run when the one before is repaired. */
  readonly commands: readonly string[];
  /** A shell command that prints counters as `nft -j` does. */
  readonly count: string;
  /** Counters of packets on their way to the gateway: nothing is repaired before it has met some of each. */
  readonly sent: readonly string[];
}

export interface DriftResult {
  readonly command: string;
  /** What the comparison found; none: the watch asked for none that found something within 10 s. */
  readonly found: readonly string[];
  /** From the command to the comparison that found it, and from there to its repair, without the time it was held. */
  readonly noticedMs: number;
  readonly repairedMs: number;
  /** By counter, the packets from before the command until its repair. */
  readonly packets: Readonly<Record<string, number>>;
}

const NOTICE_TIMEOUT_MS = 10_000;
const SENT_TIMEOUT_MS = 10_000;
/** A watch asks for a comparison every 30 s, whatever it heard: none gets so old while something is taken away. */
const OLD_WATCH_MS = 18_000;
/** At its next tick a watch that starts may hear one program more. */
const WATCH_STARTS_MS = 1_500;
/** Within it the watch tells of a repair. */
const REPAIR_HEARD_MS = 300;

const shell = promisify(execFile);
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined };

const { config, clients, holdMs, commands, count, sent } = JSON.parse(process.argv[2] ?? "") as DriftInput;
const gateway = new Gateway(config, { kernel: kernelHere(), logger: silent });
let heard = Promise.withResolvers<Suspicion>();

await gateway.init();
await gateway.sync(clients);
/** Where nothing tells of changes a comparison comes by the clock, as it would come now. */
const isTold = gateway.transactions.monitor !== undefined;
let watch = isTold ? await startWatch() : undefined;
const results: DriftResult[] = [];
for (const command of commands) {
  if (watch && performance.now() - watch.startedAt > OLD_WATCH_MS) {
    await watch.stop();
    watch = await startWatch();
  }
  results.push(await drift(command));
}
await watch?.stop();
console.log(JSON.stringify(results));

async function startWatch() {
  const startedAt = performance.now();
  heard = Promise.withResolvers();
  const stop = new AbortController();
  const watching = new GatewayWatch({
    port: config.port,
    ownTransactions: () => gateway.transactions,
    onChange: (where) => heard.resolve(where),
    logger: silent,
  }).run(stop.signal);
  // It asks for this comparison when nft listens.
  while (!(await heard.promise).elements) heard = Promise.withResolvers();
  await gateway.check();
  await silenceOf(WATCH_STARTS_MS);
  return {
    startedAt,
    stop: () => {
      stop.abort();
      return watching;
    },
  };
}

async function drift(command: string): Promise<DriftResult> {
  if (isTold) await silenceOf(REPAIR_HEARD_MS);
  const before = await counted();
  const start = performance.now();
  await shell("sh", ["-ec", command]);
  const found = await notice();
  const noticedMs = performance.now() - start;
  const packets = await hold(before);
  const repairAt = performance.now();
  await gateway.repair();
  const repairedMs = performance.now() - repairAt;
  return { command, found, noticedMs, repairedMs, packets };
}

/** Leaves what was taken away as it is until packets have met it. */
async function hold(before: Readonly<Record<string, number>>): Promise<Record<string, number>> {
  const deadline = performance.now() + SENT_TIMEOUT_MS;
  for (;;) {
    await sleep(holdMs);
    const packets = Object.fromEntries(
      Object.entries(await counted()).map(([name, count]) => [name, count - (before[name] ?? 0)]),
    );
    if (sent.every((name) => packets[name]) || performance.now() > deadline) return packets;
  }
}

/** Compares where and when the watch says so. */
async function notice(): Promise<string[]> {
  if (!isTold) return differencesOf({ elements: true });
  const deadline = sleep(NOTICE_TIMEOUT_MS, undefined, { ref: false });
  for (;;) {
    const where = await Promise.race([heard.promise, deadline]);
    if (where === undefined) return [];
    heard = Promise.withResolvers();
    const differences = await differencesOf(where);
    if (differences.length > 0) return differences;
  }
}

async function differencesOf(where: Suspicion): Promise<string[]> {
  const differences = await gateway.check(where).catch((error: Error) => [{ text: error.message }]);
  return differences.map(({ text }) => text);
}

/** Waits until the watch has said nothing for a while: what it says next is of what comes next. */
async function silenceOf(ms: number): Promise<void> {
  do {
    heard = Promise.withResolvers();
  } while ((await Promise.race([heard.promise, sleep(ms, undefined)])) !== undefined);
}

async function counted(): Promise<Record<string, number>> {
  const { nftables } = JSON.parse((await shell("sh", ["-ec", count])).stdout) as {
    nftables: { counter?: { name: string; packets: number } }[];
  };
  return Object.fromEntries(
    nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets]] : [])),
  );
}
