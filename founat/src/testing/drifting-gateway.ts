import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { GatewayClient, GatewayConfig } from "../gateway/config.ts";
import { Gateway, type Suspicion } from "../gateway/gateway.ts";
import { GatewayWatch } from "../gateway/watch.ts";
import { kernelHere } from "../kernel.ts";

// Runs in a gateway's network namespace: `node drifting-gateway.mjs JSON`. Watches it as the gateway program does while
// somebody takes one thing after another away, and prints as JSON what became of each.

export interface DriftInput {
  readonly config: GatewayConfig;
  readonly clients: readonly GatewayClient[];
  /** How long what was found stays as it is before it is repaired, in milliseconds: time for packets to go astray. */
  readonly holdMs: number;
  /** Shell commands, each run when the one before is repaired. */
  readonly commands: readonly string[];
  /** A shell command whose output is kept after each of them. */
  readonly count: string;
}

export interface DriftResult {
  readonly command: string;
  /** What the comparison found; none: nothing within 10 s. */
  readonly found: readonly string[];
  /** From the command to the comparison that found it, and from there to its repair, without the time it was held. */
  readonly noticedMs: number;
  readonly repairedMs: number;
  readonly count: string;
}

const NOTICE_TIMEOUT_MS = 10_000;
const shell = promisify(execFile);
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined };

const { config, clients, holdMs, commands, count } = JSON.parse(process.argv[2] ?? "") as DriftInput;
const gateway = new Gateway(config, { kernel: kernelHere(), logger: silent });
let changed = Promise.withResolvers<Suspicion>();
const stop = new AbortController();
const watch = new GatewayWatch({
  port: config.port,
  ownTransactions: () => gateway.transactions,
  onChange: (where) => changed.resolve(where),
  logger: silent,
});

await gateway.init();
await gateway.sync(clients);
const watching = watch.run(stop.signal);
// The first comparison comes by itself; now the monitors listen.
while (!(await changed.promise).elements) changed = Promise.withResolvers();
await gateway.check();
const results: DriftResult[] = [];
for (const command of commands) results.push(await drift(command));
stop.abort();
await watching;
console.log(JSON.stringify(results));

async function drift(command: string): Promise<DriftResult> {
  changed = Promise.withResolvers();
  const start = performance.now();
  await shell("sh", ["-ec", command]);
  const { found, noticedMs } = await notice(start);
  await sleep(holdMs);
  const repairAt = performance.now();
  await gateway.repair();
  const repairedMs = performance.now() - repairAt;
  const { stdout } = await shell("sh", ["-ec", count]);
  return { command, found, noticedMs, repairedMs, count: stdout };
}

async function notice(start: number): Promise<Pick<DriftResult, "found" | "noticedMs">> {
  const deadline = sleep(NOTICE_TIMEOUT_MS, undefined, { signal: stop.signal });
  for (;;) {
    const where = await Promise.race([changed.promise, deadline.catch(() => undefined)]);
    changed = Promise.withResolvers();
    const differences = await gateway
      .check(where ?? { elements: false })
      .catch((error: Error) => [{ text: error.message }]);
    const found = differences.map(({ text }) => text);
    if (found.length > 0 || where === undefined) return { found, noticedMs: performance.now() - start };
  }
}
