import { setTimeout as sleep } from "node:timers/promises";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { progress } from "../bench/progress.ts";
import { Internet } from "../e2e/kit/internet.ts";
import { type Ground, untilWhole } from "./ground.ts";
import { LoadClient } from "./load-client.ts";
import type { LoadOptions, LoadReport } from "./load-report.ts";
import type { RunningPod } from "./pods.ts";
import { remarksOn } from "./remarks.ts";
import { type Round, roundOf } from "./round.ts";
import type { Scenario, Scene } from "./scene.ts";

/**
 * Packets and clocks first: where processors are emulated, the start of a container takes all of one for seconds, and packets
 * that the kernel has put off (ksoftirqd) would wait in line with it. Nobody's node is as slow.
 */
const PRECEDENCE = `for pid in $(pgrep "^(ksoftirqd|chaos-load)"); do chrt --all-tasks --fifo --pid 1 $pid; done`;

/** Flows are opened all at once: a while later nodes are about their ordinary work. */
const SETTLE_MS = 10_000;

/** How often clients open flows at most until one uses the gateway: while they do not hear it, none does. */
const OPENINGS = 10;

/** What clients do during a scenario. */
export interface Load {
  /** How many TCP flows all clients keep open together: half of them IPv4, and half of either idle. */
  readonly flows: number;
  /** How many new TCP connections each client opens to each address per second. */
  readonly rate: number;
}

/**
 * Measures one round of a scenario.
 *
 * @param onMeasured is told the round before what was done is taken back, because that may fail
 * @throws ToolError `nothing-measured` when the gateway has no flow
 */
export async function measureRound(
  ground: Ground,
  scenario: Scenario,
  { flows, rate }: Load,
  onMeasured: (round: Round) => void,
): Promise<void> {
  const { cluster, clients } = ground;
  const victim = await untilWhole(ground);
  const { wide } = cluster.plan.internet;
  const targets = [wide.ipv4, wide.ipv6];
  const each = Math.ceil(flows / clients.length / targets.length);
  const idle = Math.floor(each / 2);
  const loads: LoadClient[] = [];
  const counts: NonNullable<Round["counts"]> = {};
  const scene: Scene = {
    ...{ ground, victim, node: cluster.node(victim.node) },
    mark: async () => void (await Promise.all(loads.map((load) => load.mark()))),
    count: (what, count, of) => {
      counts[what] = { count, of };
    },
  };
  const internet = new Internet({ ...cluster.plan.internet, inside: cluster.insideInternet });
  let reports: LoadReport[] = [];
  try {
    const leaks = await internet.packetsFrom(clients, async () => {
      await openFlows(loads, ground, victim, { targets, busy: each - idle, idle, rate });
      await Promise.all(cluster.nodes.map((node) => node.run(PRECEDENCE)));
      await sleep(SETTLE_MS);
      progress(scenario.summary);
      await scenario.act(scene);
      await sleep(scenario.lastsMs);
      reports = await Promise.all(loads.map((load) => load.stop()));
    });
    for (const [index, report] of reports.entries()) {
      for (const remark of remarksOn(report)) progress(`client on ${clients[index]?.node}: ${remark}`);
    }
    const leaked = leaks.reduce((sum, count) => sum + count, 0);
    const round = roundOf(reports, [victim.ipv4, victim.ipv6], leaked);
    if (round.ofVictim === 0) throw nothingMeasured(victim);
    onMeasured(Object.keys(counts).length > 0 ? { ...round, counts } : round);
  } finally {
    try {
      await killAll(loads);
    } finally {
      await scenario.undo?.(scene);
    }
  }
}

/**
 * Has all clients open their flows, again and again until one of these uses the gateway.
 *
 * @param loads those that have been started, whether this returns or throws
 */
async function openFlows(
  loads: LoadClient[],
  { cluster, clients }: Ground,
  victim: RunningPod,
  options: LoadOptions,
): Promise<void> {
  for (let opening = 1; opening <= OPENINGS; opening += 1) {
    loads.push(...clients.map((pod) => new LoadClient(cluster.node(pod.node), pod, options)));
    await Promise.all(loads.map((load) => load.ready()));
    if (loads.some((load) => load.uses(victim))) return;
    await killAll(loads.splice(0));
    progress(`no flow uses gateway ${victim.name}: opening ${opening} of ${OPENINGS}`);
    await sleep(SETTLE_MS);
  }
  throw nothingMeasured(victim);
}

async function killAll(loads: readonly LoadClient[]): Promise<void> {
  await Promise.all(loads.map((load) => load.kill()));
}

function nothingMeasured({ name }: RunningPod): ToolError {
  return new ToolError("nothing-measured", `no flow uses gateway ${name}: use more flows`);
}
