import { imageTarballs } from "@egress-nat/tools/images";
import { runCommand } from "@egress-nat/tools/system/run-command";
import { aligned } from "@egress-nat/tools/system/table";
import { program } from "commander";
import { Listr, PRESET_TIMER } from "listr2";
import prettyMilliseconds from "pretty-ms";
import type { Cluster } from "../bed/cluster/cluster.ts";
import { upCluster } from "../bed/cluster/up.ts";
import { installChart } from "../bed/workload/chart.ts";
import { gatewaysOf } from "../bed/workload/gateways.ts";
import { Kubectl } from "../bed/workload/kubectl.ts";
import { type Proof, prove } from "./proof.ts";
import { EGRESS, setTheScene, witnesses } from "./scene.ts";

/** The name that `npm run cluster` takes when none is given. */
const CLUSTER = "demo";

const RENDERER = process.stdout.isTTY ? "default" : "simple";

program
  .name("npm run demo --")
  .description(
    `Shows the product at work: brings up a Kubernetes cluster of two nodes on this machine, installs the Helm chart,
makes an Egress with two gateways for the whole internet, and lets pods ask the internet which address it sees.
It fails unless the internet sees clients with the address of a gateway, and a bystander with its own. Needs root.`,
  )
  .action(demo);

await runCommand(program);

async function demo(): Promise<void> {
  const startedAt = performance.now();
  console.log("A cluster of two nodes");
  const cluster = await upCluster({
    name: CLUSTER,
    nodes: 2,
    ranges: "private",
    proxyMode: "nftables",
    kubernetes: "newest",
    lifetime: "detached",
    images: imageTarballs,
    renderer: RENDERER,
  });
  console.log("\nThe product, its gateways and its clients");
  const { rows, statements, examples, faults } = await perform(cluster);

  console.log(`\nWhat the internet saw\n${aligned(statements).join("\n")}`);
  const cells = rows.map(({ pod, node, gateway, address }) => [`${pod} on ${node}`, gateway, address]);
  console.log(`\n${aligned([["CLIENT", "GATEWAY", "SEEN BY THE INTERNET AS"], ...cells]).join("\n")}\n`);
  if (faults.length > 0) {
    console.error(`The demo failed:\n${faults.map((fault) => `  ${fault}`).join("\n")}\n`);
    process.exitCode = 1;
  } else {
    console.log(
      "The internet sees clients with the address of a gateway, on every node, IPv4 and IPv6, and the bystander with its own.",
    );
    console.log(`It took ${prettyMilliseconds(performance.now() - startedAt)}.\n`);
  }
  console.log("The cluster is up. Ask the internet yourself:");
  for (const { command, answer } of examples) console.log(`  ${command}\n  ${answer}`);
  console.log("Look around:");
  console.log("  npm run cluster -- kubectl get egress -A");
  console.log("  npm run cluster -- kubectl get egressclientslices -A -o yaml");
  console.log("  npm run cluster -- shell");
  console.log("End it:");
  console.log("  npm run cluster -- down");
}

/** Installs the product, sets the scene and asks the pods. */
async function perform(cluster: Cluster): Promise<Proof> {
  const kubectl = new Kubectl(cluster.kubectlCommand);
  const nodes = cluster.nodes.map(({ name }) => name);
  const scene: { proof?: Proof } = {};
  await new Listr(
    [
      {
        title: "The images of this checkout on every node",
        task: async () => cluster.loadImages(await imageTarballs()),
      },
      { title: "helm install", task: () => installChart(cluster) },
      {
        title: "An Egress with two gateways, a client on each node, a bystander",
        task: () => setTheScene(kubectl, nodes),
      },
      {
        title: "What the internet sees",
        task: async () => {
          const seen = await witnesses(kubectl, nodes, cluster.plan.internet.wide);
          scene.proof = prove(seen, await gatewaysOf(kubectl, EGRESS));
        },
      },
    ],
    {
      renderer: RENDERER,
      rendererOptions: { timer: PRESET_TIMER },
    },
  ).run();
  return scene.proof as Proof;
}
