import { join } from "node:path";
import { CHART } from "@egress-nat/tools/chart";
import { imageTarballs } from "@egress-nat/tools/images";
import { afterAll, beforeAll, test } from "vitest";
import { type Cluster, removeCluster } from "../bed/cluster/cluster.ts";
import { upOneNode } from "../bed/cluster/one-node.ts";
import { installChart } from "../bed/workload/chart.ts";
import { gatewaysReady } from "../bed/workload/gateways.ts";
import { Kubectl } from "../bed/workload/kubectl.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import { EGRESS, setTheScene } from "../demo/scene.ts";
import { Internet } from "../e2e/kit/internet.ts";
import { Transfers } from "../e2e/kit/transfers.ts";
import { UPGRADED } from "./names.ts";
import { PreviousVersion } from "./previous-version.ts";

let previous: PreviousVersion;
let cluster: Cluster;
let kubectl: Kubectl;
let transfers: Transfers;

beforeAll(async () => {
  previous = await PreviousVersion.checkOut();
  cluster = await upOneNode(UPGRADED, { images: () => previous.images() });
  await installChart(cluster, previous.chart);
  kubectl = new Kubectl(cluster.kubectlCommand);
  await setTheScene(
    kubectl,
    cluster.nodes.map(({ name }) => name),
  );
  const client = await ProbePod.ready(kubectl, "demo", "client-1");
  transfers = await Transfers.start(
    new Internet({ ...cluster.plan.internet, inside: cluster.insideInternet }),
    [client],
  );
});

afterAll(async () => {
  await removeCluster(UPGRADED);
  await previous[Symbol.asyncDispose]();
});

/** Above what helm and the restart of the programs are given: who is late is named by them. */
const UPGRADE_TIMEOUT_MS = 600_000;

test("an upgrade of the chart from the version before keeps the traffic of clients", {
  timeout: UPGRADE_TIMEOUT_MS,
}, async () => {
  await cluster.loadImages(await imageTarballs());
  await kubectl.run(["apply", "--server-side", "--force-conflicts", "-f", join(CHART, "crds")]);
  await installChart(cluster);
  await transfers.goOn();
});

test("and so does the replacement of its gateways", async () => {
  const deployment = ["deployment", EGRESS.name, "-n", EGRESS.namespace];
  await kubectl.run(["rollout", "restart", ...deployment]);
  await kubectl.run(["rollout", "status", ...deployment, "--timeout=180s"], { timeoutMs: 200_000 });
  await gatewaysReady(kubectl, EGRESS);
  await transfers.goOn();
});
