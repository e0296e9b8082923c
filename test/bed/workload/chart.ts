import { CHART } from "@egress-nat/tools/chart";
import { z } from "zod";
import type { Cluster } from "../cluster/cluster.ts";
import type { ClusterPlan } from "../cluster/plan.ts";

/** The Helm release of the product in test clusters. */
export const RELEASE = { name: "egress-nat", namespace: "egress-nat" } as const;

/** Of the product's images on nodes. */
const REGISTRY = "docker.io/library";
const TAG = "test";

const INSTALL_TIMEOUT_MS = 960_000;

const Releases = z.array(z.object({ name: z.string() }));

/**
 * Installs the product, by default from the checkout, with the images that the nodes have, and waits until it runs. Where it is
 * installed already its programs are restarted, because their images may be other ones under the same names.
 */
export async function installChart(cluster: Cluster, chart = CHART): Promise<void> {
  const list = await cluster.helm(["list", "--namespace", RELEASE.namespace, "--output", "json"]);
  const wasInstalled = Releases.parse(JSON.parse(list)).some(({ name }) => name === RELEASE.name);
  await cluster.helm(installArguments(cluster.plan, chart, TAG), { timeoutMs: INSTALL_TIMEOUT_MS });
  if (wasInstalled) await restartPrograms(cluster);
}

/** Gives the images that the nodes have another tag, too, for {@link upgradeChart}. */
export async function tagImages(cluster: Cluster, tag: string): Promise<void> {
  await Promise.all(cluster.nodes.map((node) => node.tagImages(TAG, tag)));
}

/**
 * Upgrades the product to images of another tag, and waits until its programs run. Gateways follow.
 *
 * @param tag default: the one that {@link installChart} uses
 */
export async function upgradeChart(cluster: Cluster, tag = TAG): Promise<void> {
  await cluster.helm(installArguments(cluster.plan, CHART, tag), { timeoutMs: INSTALL_TIMEOUT_MS });
}

function values({ options, serviceCidrs }: ClusterPlan, tag: string): Readonly<Record<string, unknown>> {
  return {
    image: { registry: REGISTRY, tag, pullPolicy: "Never" },
    // Nodes are emulated: what stands by takes time from what works, and to work takes more of it.
    "operator.replicas": 1,
    "operator.resources.requests.cpu": "200m",
    "nodeAgent.resources.requests.cpu": "300m",
    // Before Kubernetes 1.33 there are no ServiceCIDRs to find them by.
    ...(options.kubernetes === "oldest" && { clusterRanges: serviceCidrs }),
  };
}

function installArguments(plan: ClusterPlan, chart: string, tag: string): string[] {
  return [
    ...["upgrade", "--install", RELEASE.name, chart],
    ...["--namespace", RELEASE.namespace, "--create-namespace"],
    ...Object.entries(values(plan, tag)).flatMap(([name, value]) => [
      "--set-json",
      `${name}=${JSON.stringify(value)}`,
    ]),
    ...["--wait", "--timeout", "15m"],
  ];
}

async function restartPrograms(cluster: Cluster): Promise<void> {
  const part = ["--selector", "app.kubernetes.io/part-of=egress-nat", "--namespace", RELEASE.namespace];
  await cluster.kubectl(["rollout", "restart", "deployments,daemonsets", ...part]);
  await cluster.kubectl(["rollout", "status", "deployments,daemonsets", ...part, "--timeout=180s"]);
}
