import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import { z } from "zod";
import type { Cluster } from "../../bed/cluster/cluster.ts";
import { inNetns, netnsPath } from "../../bed/system/network-namespace.ts";
import { RELEASE } from "../../bed/workload/chart.ts";
import { gatewaysReady } from "../../bed/workload/gateways.ts";
import type { Kubectl } from "../../bed/workload/kubectl.ts";
import { egress, namespace } from "../../bed/workload/manifests.ts";
import { EGRESS } from "../clients/slices.ts";
import { withCluster } from "../cluster.ts";
import { progress } from "../progress.ts";
import { type Limit, medianOf, type Report, type Series } from "../report.ts";
import type { Samples } from "../samples.ts";

const SETTLE_MS = 60_000;
const SLICES = 100;
const STRANDED_PODS = 20_000;

interface Program {
  readonly namespace: string;
  readonly selector: string;
}

const OPERATOR: Program = { namespace: RELEASE.namespace, selector: "app.kubernetes.io/component=operator" };
const AGENT: Program = { namespace: RELEASE.namespace, selector: "app.kubernetes.io/component=node-agent" };
const GATEWAYS: Program = { namespace: EGRESS.namespace, selector: `coil.cybozu.com/egress=${EGRESS.name}` };

/** VmRSS of the programs in a cluster of one node, a minute after their processes are ready. */
export function benchMemory(rounds: number): Promise<Report> {
  return withCluster((cluster, kubectl) => measure(cluster, kubectl, rounds));
}

async function measure(cluster: Cluster, kubectl: Kubectl, rounds: number): Promise<Report> {
  progress(`${rounds} gateways start`);
  // As many gateways as samples are wanted: they grow ready side by side.
  await kubectl.apply(
    namespace(EGRESS.namespace),
    egress(EGRESS, { replicas: rounds, destinations: ["0.0.0.0/0"] }),
  );
  await gatewaysReady(kubectl, EGRESS);
  await sleep(SETTLE_MS);
  const gateways = await residentSet(kubectl, GATEWAYS);
  const [operator = [], agent = []] = await ofNewProcesses(kubectl, [OPERATOR, AGENT], rounds);

  // It would take the slices away again: their nodes do not exist.
  await kubectl.run(["scale", "deployments", "--all", "-n", OPERATOR.namespace, "--replicas=0"]);
  await kubectl.wait(["pods", "-n", OPERATOR.namespace, "-l", OPERATOR.selector], "delete");
  progress("10,000 clients");
  await crowd(cluster, "slices", SLICES);
  await restart(kubectl, GATEWAYS);
  await sleep(SETTLE_MS);
  const crowded = await residentSet(kubectl, GATEWAYS);

  progress(`${STRANDED_PODS} other pods`);
  await crowd(cluster, "pods", STRANDED_PODS);
  await sleep(SETTLE_MS);
  const gatewayGrowth = growth(crowded, await residentSet(kubectl, GATEWAYS));
  const [crowdedAgent = []] = await ofNewProcesses(kubectl, [AGENT], rounds);
  const agentGrowth = growth(agent, crowdedAgent);

  const limited: readonly (readonly [Series, Limit])[] = [
    [megabytes("operator", operator), { atMost: 120 }],
    [megabytes("node agent", agent), { atMost: 90 }],
    [megabytes("egress pod", gateways), { atMost: 90 }],
    [megabytes("egress pod, 10,000 clients", crowded), { atMost: 110 }],
    [megabytes("node agent, growth with 20,000 other pods", agentGrowth), { atMost: 5 }],
    [megabytes("egress pod, growth with 20,000 other pods", gatewayGrowth), { atMost: 5 }],
  ];
  return {
    bench: "memory",
    setup: `VmRSS in a cluster of one node, ${SETTLE_MS / 1000} s after a new process is ready`,
    series: limited.map(([series]) => series),
    targets: limited.map(([series, limit]) => medianOf(series, limit)),
  };
}

function megabytes(name: string, samples: Samples): Series {
  return { name, unit: "MB", samples };
}

/** From one sample to the other, in their order. */
function growth(before: Samples, after: Samples): number[] {
  return after.map((value, index) => value - (before[index] ?? Number.NaN));
}

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      status: z.object({
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
      }),
    }),
  ),
});

/** The pods of a program by their names, and whether each is ready. */
async function podsOf(kubectl: Kubectl, { namespace, selector }: Program): Promise<Map<string, boolean>> {
  const { items } = await kubectl.get(
    Pods,
    "pods",
    "-n",
    namespace,
    "-l",
    selector,
    "--sort-by=.metadata.name",
  );
  return new Map(
    items.map(({ metadata, status }) => [
      metadata.name,
      status.conditions.some(({ type, status }) => type === "Ready" && status === "True"),
    ]),
  );
}

/** What a new process of each program holds once it has settled, as often as there are rounds. */
async function ofNewProcesses(
  kubectl: Kubectl,
  programs: readonly Program[],
  rounds: number,
): Promise<readonly Samples[]> {
  const samples = programs.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    progress(`new processes: ${round + 1} of ${rounds}`);
    await Promise.all(programs.map((program) => restart(kubectl, program)));
    await sleep(SETTLE_MS);
    for (const [index, program] of programs.entries()) {
      samples[index]?.push(...(await residentSet(kubectl, program)));
    }
  }
  return samples;
}

/** Puts new pods in the place of a program's pods, and waits until they are ready. */
async function restart(kubectl: Kubectl, program: Program): Promise<void> {
  const { namespace, selector } = program;
  const old = await podsOf(kubectl, program);
  // A gateway that has clients would serve them for as long as it may.
  await kubectl.run(["delete", "pods", "-n", namespace, "-l", selector, "--grace-period=1"]);
  await waitUntil(
    async () => {
      const pods = [...(await podsOf(kubectl, program))];
      return pods.length === old.size && pods.every(([name, ready]) => ready && !old.has(name));
    },
    { what: `new pods of ${selector}`, timeoutMs: 240_000, intervalMs: 1000 },
  );
}

/** VmRSS of a program's processes in MB, in the order of its pods' names. */
async function residentSet(kubectl: Kubectl, program: Program): Promise<number[]> {
  const samples: number[] = [];
  for (const pod of (await podsOf(kubectl, program)).keys()) {
    const status = await kubectl.run(["exec", "-n", program.namespace, pod, "--", "cat", "/proc/1/status"]);
    samples.push((Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6);
  }
  return samples;
}

async function crowd(cluster: Cluster, kind: "slices" | "pods", count: number): Promise<void> {
  const program = join(import.meta.dirname, "crowd.ts");
  const command = [process.execPath, "--conditions=source", program];
  const [file = "", ...args] = inNetns(netnsPath(cluster.plan.netns), [
    ...command,
    ...[cluster.controlPlane.kubeconfig, kind, String(count)],
  ]);
  await execa(file, args);
}
