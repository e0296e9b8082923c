import { join } from "node:path";
import { z } from "zod";
import type { Cluster } from "../cluster/cluster.ts";

/** The chart of this checkout. */
export const CHART = join(import.meta.dirname, "../../config/helm/egress-nat");

/** The Helm release of the product in test clusters. */
export const RELEASE = { name: "egress-nat", namespace: "egress-nat" } as const;

const INSTALL_TIMEOUT_MS = 360_000;

const Releases = z.array(z.object({ name: z.string() }));

/**
 * Installs the product, by default from the checkout, with the images that the nodes have, and waits until it runs. Where it is
 * installed already its programs are started anew: their images may be other ones under the same names.
 */
export async function installChart(cluster: Cluster, chart = CHART): Promise<void> {
  const list = await cluster.helm(["list", "--namespace", RELEASE.namespace, "--output", "json"]);
  const wasInstalled = Releases.parse(JSON.parse(list)).some(({ name }) => name === RELEASE.name);
  await cluster.helm(installArguments(chart), { timeoutMs: INSTALL_TIMEOUT_MS });
  if (wasInstalled) await restartPrograms(cluster);
}

const VALUES = {
  image: { registry: "docker.io/library", tag: "test", pullPolicy: "Never" },
  // Nodes are emulated: what stands by takes time from what works.
  "operator.replicas": 1,
};

function installArguments(chart: string): string[] {
  return [
    ...["upgrade", "--install", RELEASE.name, chart],
    ...["--namespace", RELEASE.namespace, "--create-namespace"],
    ...Object.entries(VALUES).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]),
    ...["--wait", "--timeout", "5m"],
  ];
}

async function restartPrograms(cluster: Cluster): Promise<void> {
  const part = ["--selector", "app.kubernetes.io/part-of=egress-nat", "--namespace", RELEASE.namespace];
  await cluster.kubectl(["rollout", "restart", "deployments,daemonsets", ...part]);
  await cluster.kubectl(["rollout", "status", "deployments,daemonsets", ...part, "--timeout=180s"]);
}
