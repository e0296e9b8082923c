import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { DriftWatch } from "@egress-nat/client-sidecar";
import { Client, type ClientConfig, kernelInNetns, openNetnsWatch } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { execa } from "execa";
import { withoutTunnels } from "./native-kernel.ts";

// `node main.js CLIENTS ROUNDS`: the part of a node agent that looks after its clients, and so many network namespaces
// for it. Prints JSON.

/** As long as a client may differ from what it should be. */
const WINDOW_MS = 15_000;

/** The first look at each client, and the last of what its own namespace has to say. */
const SETTLE_MS = 20_000;

const [clients = 1, rounds = 1] = process.argv.slice(2).map(Number);
const logger = createLogger({ name: "bench", level: "warn" });
const config: ClientConfig = {
  uplink: "eth0",
  clusterRanges: ["10.244.0.0/16", "10.96.0.0/16", "fd00:244::/48", "fd00:96::/112"],
  egresses: [
    {
      name: "bench/bench",
      destinations: ["0.0.0.0/0", "::/0"],
      excluded: [],
      gateways: [{ ipv4: "10.96.0.10", ipv6: "fd00:96::10" }],
      peers: ["10.96.0.10", "10.244.2.9", "fd00:96::10", "fd00:244:2::9"],
      port: 5555,
      sourcePortAuto: false,
      originatingOnly: true,
    },
  ],
};
const names = Array.from({ length: clients }, (_, index) => `egress-nat-bench-${index}`);
const clientOf = (netns: string) =>
  new Client({ kernel: withoutTunnels(kernelInNetns(`/run/netns/${netns}`)), logger });

const looks = { waiting: 0, done: 0, at: new Map<string, number>() };
const ended = new AbortController();
const registry = {
  values: () => names.map((name) => ({ containerId: name, ifname: "eth0", netns: `/run/netns/${name}` })),
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

try {
  for (const name of names) await makeClient(name);
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
} finally {
  await execa("ip", ["-force", "-batch", "-"], {
    input: names.map((name) => `netns del ${name}\n`).join(""),
  });
}

/** A pod's network namespace as its network leaves it, made a client. */
async function makeClient(name: string): Promise<void> {
  const host = [`netns add ${name}`, `link add eth0 netns ${name} type veth peer name node0 netns ${name}`];
  const pod = [
    ...["lo", "eth0", "node0"].map((device) => `link set ${device} up`),
    "address add 10.244.1.7/24 dev eth0",
    "address add fd00:244:1::7/64 dev eth0 nodad",
    "route add default via 10.244.1.1",
    "route add default via fd00:244:1::1",
  ];
  await execa("ip", ["-batch", "-"], { input: host.map((line) => `${line}\n`).join("") });
  await execa("ip", ["-n", name, "-batch", "-"], { input: pod.map((line) => `${line}\n`).join("") });
  await clientOf(name).apply(config);
}

async function look(name: string): Promise<void> {
  looks.waiting += 1;
  await clientOf(name).check(config);
  looks.waiting -= 1;
  looks.done += 1;
  looks.at.set(name, performance.now());
}

/** Milliseconds of CPU that a look at one client takes, in all processes. */
async function compare(): Promise<number> {
  const before = cpuMs();
  for (const name of names) await clientOf(name).check(config);
  return (cpuMs() - before) / clients;
}

/** From a rule that somebody else deletes until the client has been compared. */
async function notice(name: string): Promise<number> {
  const startedAt = performance.now();
  await execa("ip", ["-n", name, "rule", "del", "pref", "2100"]);
  while ((looks.at.get(name) ?? 0) < startedAt) await sleep(10);
  const tookMs = performance.now() - startedAt;
  await clientOf(name).apply(config);
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
