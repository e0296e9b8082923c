import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { type Cluster, removeCluster } from "../../cluster/cluster.ts";
import { upCluster } from "../../cluster/up.ts";
import { imageTarballs } from "../../images/index.ts";
import { inNetns, netnsPath } from "../../system/network-namespace.ts";
import { waitUntil } from "../../system/wait-until.ts";
import { installChart, RELEASE } from "../../workload/chart.ts";
import { gatewaysReady } from "../../workload/gateways.ts";
import { Kubectl } from "../../workload/kubectl.ts";
import { egress, namespace } from "../../workload/manifests.ts";
import { EGRESS } from "../clients/slices.ts";
import type { Report, Series, Target } from "../report.ts";
import { summarize } from "../samples.ts";

const CLUSTER = "bench";
const SETTLE_MS = 60_000;
const SLICES = 100;
const STRANDED_PODS = 20_000;

interface Program {
  readonly namespace: string;
  readonly selector: string;
}

const OPERATOR: Program = { namespace: RELEASE.namespace, selector: "app.kubernetes.io/component=operator" };
const AGENT: Program = { namespace: RELEASE.namespace, selector: "app.kubernetes.io/component=node-agent" };
const GATEWAY: Program = { namespace: EGRESS.namespace, selector: `coil.cybozu.com/egress=${EGRESS.name}` };

/** VmRSS of the programs in a cluster of one node: each sample is that of a new process, a minute after it is ready. */
export async function benchMemory(rounds: number): Promise<Report> {
  await removeCluster(CLUSTER);
  const cluster = await upCluster({
    name: CLUSTER,
    nodes: 1,
    ranges: "private",
    proxyMode: "nftables",
    lifetime: "owner",
    images: imageTarballs,
    renderer: "silent",
  });
  try {
    await installChart(cluster);
    return await measure(cluster, new Kubectl(cluster.kubectlCommand), rounds);
  } finally {
    await removeCluster(CLUSTER);
  }
}

async function measure(cluster: Cluster, kubectl: Kubectl, rounds: number): Promise<Report> {
  await kubectl.apply(
    namespace(EGRESS.namespace),
    egress(EGRESS, { replicas: 1, destinations: ["0.0.0.0/0"] }),
  );
  await gatewaysReady(kubectl, EGRESS);
  const fresh = await sampleRestarts(kubectl, [OPERATOR, AGENT, GATEWAY], rounds);

  // It would take the slices away again: their nodes do not exist.
  await kubectl.run([
    "scale",
    "deployments",
    "-n",
    OPERATOR.namespace,
    "-l",
    OPERATOR.selector,
    "--replicas=0",
  ]);
  await crowd(cluster, "slices", SLICES);
  const crowded = await sampleRestarts(kubectl, [GATEWAY], rounds);

  const before = await sampleNow(kubectl, [AGENT, GATEWAY]);
  await crowd(cluster, "pods", STRANDED_PODS);
  await sleep(SETTLE_MS);
  const after = await sampleNow(kubectl, [AGENT, GATEWAY]);

  const growth = (program: Program) => [Number(after.get(program)) - Number(before.get(program))];
  return {
    bench: "memory",
    setup: `VmRSS in a cluster of one node, ${SETTLE_MS / 1000} s after a new process is ready`,
    ...limits([
      ["operator", fresh.get(OPERATOR), 120],
      ["node agent", fresh.get(AGENT), 90],
      ["egress pod", fresh.get(GATEWAY), 90],
      ["egress pod, 10,000 clients", crowded.get(GATEWAY), 110],
      ["node agent, growth with 20,000 other pods", growth(AGENT), 5],
      ["egress pod, growth with 20,000 other pods", growth(GATEWAY), 5],
    ]),
  };
}

function limits(rows: readonly [string, readonly number[] | undefined, number][]): {
  series: Series[];
  targets: Target[];
} {
  return {
    series: rows.map(([name, samples = []]) => ({ name, unit: "MB", samples })),
    targets: rows.map(([name, samples = [], limit]) => ({
      name,
      value: summarize(samples).median,
      limit,
      reached: "at most",
    })),
  };
}

async function sampleRestarts(
  kubectl: Kubectl,
  programs: readonly Program[],
  rounds: number,
): Promise<Map<Program, number[]>> {
  const samples = new Map<Program, number[]>(programs.map((program) => [program, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const { namespace, selector } of programs) {
      await kubectl.run(["delete", "pods", "-n", namespace, "-l", selector, "--wait"]);
    }
    for (const { namespace, selector } of programs) {
      await waitUntil(
        async () => {
          await kubectl.wait(["pods", "-n", namespace, "-l", selector], "condition=Ready", 180_000);
          return true;
        },
        { what: `new pods of ${selector}`, timeoutMs: 240_000, intervalMs: 1000 },
      );
    }
    await sleep(SETTLE_MS);
    for (const [program, megabytes] of await sampleNow(kubectl, programs))
      samples.get(program)?.push(megabytes);
  }
  return samples;
}

async function sampleNow(kubectl: Kubectl, programs: readonly Program[]): Promise<Map<Program, number>> {
  const samples = new Map<Program, number>();
  for (const program of programs) {
    const { namespace, selector } = program;
    const pods = await kubectl.run(["get", "pods", "-n", namespace, "-l", selector, "-o", "name"]);
    const [pod = ""] = pods.split("\n");
    const status = await kubectl.run(["exec", "-n", namespace, pod, "--", "cat", "/proc/1/status"]);
    samples.set(program, (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6);
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
