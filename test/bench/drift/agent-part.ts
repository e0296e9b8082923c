import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { DriftWatch } from "@egress-nat/client-sidecar";
import { openNetnsWatch } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { execa } from "execa";
import { clientConfigOf, clientIn, clientNames, netnsPath, withPodNetworks } from "../native/clients.ts";

// `node main.js CLIENTS ROUNDS`: the part of a node agent that looks after its clients, and so many network namespaces
// for it. Prints JSON.

/** As long as a client may differ from what it should be. */
const WINDOW_MS = 15_000;

/** The first look at each client, and the last of what its own namespace has to say. */
const SETTLE_MS = 20_000;

const [clients = 1, rounds = 1] = process.argv.slice(2).map(Number);
const logger = createLogger({ name: "bench", level: "warn" });
const config = clientConfigOf({ ipv4: "10.96.0.10", ipv6: "fd00:96::10" });
const names = clientNames(clients);

const looks = { waiting: 0, done: 0, at: new Map<string, number>() };
const ended = new AbortController();
const registry = {
  values: () => names.map((name) => ({ containerId: name, ifname: "eth0", netns: netnsPath(name) })),
};
const reapplier = {
  reapply: (found: readonly { readonly containerId: string }[]) => {
    for (const { containerId } of found) void look(containerId);
  },
  get isIdle() {
    return looks.waiting === 0;
  },
};
const watch = new DriftWatch({
  ...{ registry, reapplier, logger },
  networks: { openWatch: openNetnsWatch },
  metrics: { refusedPackets: { inc: () => undefined } },
});

await withPodNetworks(names, async () => {
  for (const name of names) await clientIn(name).apply(config);
  const running = watch.run(ended.signal);
  await sleep(SETTLE_MS);
  const compareMs: number[] = [];
  const idle: number[] = [];
  const noticeMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const before = { cpuMs: cpuMs(), done: looks.done };
    await sleep(WINDOW_MS);
    if (looks.done !== before.done) throw new Error("somebody changes the namespaces of the benchmark");
    idle.push((100 * (cpuMs() - before.cpuMs)) / WINDOW_MS);
    compareMs.push(await compare());
    noticeMs.push(await notice(names[round % clients] as string));
  }
  ended.abort();
  await running;
  console.log(JSON.stringify({ idlePercent: idle, compareMs, noticeMs }));
});

async function look(name: string): Promise<void> {
  looks.waiting += 1;
  await clientIn(name).check(config);
  looks.waiting -= 1;
  looks.done += 1;
  looks.at.set(name, performance.now());
}

/** Milliseconds of CPU that a look at one client takes, in all processes. */
async function compare(): Promise<number> {
  const before = cpuMs();
  for (const name of names) await clientIn(name).check(config);
  return (cpuMs() - before) / clients;
}

/** From a rule that somebody else deletes until the client has been compared. */
async function notice(name: string): Promise<number> {
  const startedAt = performance.now();
  await execa("ip", ["-n", name, "rule", "del", "pref", "2100"]);
  while ((looks.at.get(name) ?? 0) < startedAt) await sleep(10);
  const tookMs = performance.now() - startedAt;
  await clientIn(name).apply(config);
  await sleep(SETTLE_MS);
  return tookMs;
}

/** Of this process, those that it runs at the moment, and those that it has run. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  const running = childrenOf(process.pid).reduce((sum, pid) => sum + onCpuNs(pid) / 1e6, 0);
  return (user + system) / 1e3 + running + endedChildrenMs();
}

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}

/** https://docs.kernel.org/scheduler/sched-stats.html */
function onCpuNs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]);
}

/** proc_pid_stat(5): cutime and cstime, in hundredths of a second. */
function endedChildrenMs(): number {
  const afterName = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(afterName[13]) + Number(afterName[14])) * 10;
}
