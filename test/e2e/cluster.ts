import { join } from "node:path";
import { imageTarballs } from "@egress-nat/tools/images";
import { helmBinary, kubectlBinary } from "@egress-nat/tools/system/client-tools";
import type { TestProject } from "vitest/node";
import { z } from "zod";
import { type Cluster, isUp, removeCluster } from "../bed/cluster/cluster.ts";
import { upCluster } from "../bed/cluster/up.ts";
import { installChart } from "../bed/workload/chart.ts";
import { Kubectl } from "../bed/workload/kubectl.ts";
import { clearTheStage, setTheStage } from "./kit/cast.ts";
import { orFindings } from "./kit/findings.ts";
import { CLUSTER, NAMESPACES } from "./kit/names.ts";
import { type Settings, settingsFrom } from "./kit/settings.ts";
import type { World } from "./kit/world.ts";

const DEMO = "demo";
const CLUSTER_PROGRAM = join(import.meta.dirname, "../bed/cluster/main.ts");

/**
 * Makes the world of the e2e tests: a cluster with the product installed by helm, two Egresses and the pods that all
 * test files use. What is returned takes it away again.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const settings = settingsFrom(process.env);
  const { world, end } = await (settings.kubeconfig === undefined
    ? ownCluster(settings)
    : givenCluster(settings, settings.kubeconfig));
  const kubectl = new Kubectl(world.kubectl);
  await orFindings(kubectl, () => setTheStage(kubectl, world));
  project.provide("world", world);
  return end;
}

interface Prepared {
  readonly world: World;
  readonly end: () => Promise<void>;
}

async function ownCluster(settings: Settings): Promise<Prepared> {
  const { keptCluster, proxyMode, ranges } = settings;
  if (keptCluster === undefined) await makeRoom();
  const cluster = await upCluster({
    name: keptCluster ?? CLUSTER,
    nodes: 2,
    ranges,
    proxyMode,
    kubernetes: "newest",
    lifetime: keptCluster === undefined ? "owner" : "detached",
    images: imageTarballs,
    renderer: "simple",
  });
  if (keptCluster !== undefined) await cluster.loadImages(await imageTarballs());
  await orFindings(new Kubectl(cluster.kubectlCommand), () => installChart(cluster));
  return {
    world: worldOf(cluster, settings),
    end: async () => {
      if (keptCluster === undefined) await removeCluster(CLUSTER);
    },
  };
}

/** One cluster is what two cores carry: ends what a broken run left, and the demo's. */
async function makeRoom(): Promise<void> {
  await removeCluster(CLUSTER);
  if (await isUp(DEMO)) {
    console.log("ending the demo's cluster");
    await removeCluster(DEMO);
  }
}

function worldOf(cluster: Cluster, { image, long, proxyMode, selection }: Settings): World {
  const { wide, narrow, narrowTen, lowMtu, metadata } = cluster.plan.internet;
  const program = [process.execPath, "--conditions=source", CLUSTER_PROGRAM];
  return {
    cluster: cluster.name,
    kubectl: cluster.kubectlCommand,
    helm: cluster.helmCommand,
    nodes: cluster.nodes.map(({ name }) => name),
    image,
    long,
    proxyMode,
    selection,
    internet: { wide, narrow, narrowTen, lowMtu, metadata, inside: cluster.insideInternet },
    apiserver: {
      stop: [...program, "stop", "apiserver", "--name", cluster.name],
      start: [...program, "start", "apiserver", "--name", cluster.name],
    },
    mayUninstall: true,
  };
}

/** The tests' namespaces are removed at the end, with all that is in them. */
async function assertNothingIsTakenOver(kubectl: Kubectl): Promise<void> {
  const present = await kubectl.run(["get", "namespaces", ...NAMESPACES, "--ignore-not-found", "-o", "name"]);
  if (present !== "") {
    throw new Error(
      `the cluster of E2E_KUBECONFIG has namespaces that the tests would take over and remove: ${present.trim().split("\n").join(", ")}; ` +
        "if they are leftovers of a broken run, delete them, else use another cluster",
    );
  }
}

const Nodes = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })).min(2) });

async function givenCluster({ image, long, selection }: Settings, kubeconfig: string): Promise<Prepared> {
  const flag = `--kubeconfig=${kubeconfig}`;
  const command = [await kubectlBinary(), flag];
  const kubectl = new Kubectl(command);
  await assertNothingIsTakenOver(kubectl);
  const { items } = await kubectl.get(Nodes, "nodes");
  return {
    world: {
      kubectl: command,
      helm: [await helmBinary(), flag],
      nodes: items.map(({ metadata }) => metadata.name),
      image,
      selection,
      mayUninstall: false,
      long,
    },
    end: () => clearTheStage(kubectl),
  };
}
