import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { imageTarballs } from "@egress-nat/tools/images";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, removeCluster } from "../bed/cluster/cluster.ts";
import { upOneNode } from "../bed/cluster/one-node.ts";
import { installChart, RELEASE } from "../bed/workload/chart.ts";
import { coilImages } from "./images.ts";
import { COIL, NODE_NAMES } from "./names.ts";
import { type CoilSuite, coilSuite, ECHOTEST } from "./suite.ts";

const SUITE_TIMEOUT_MS = 3_600_000;

let cluster: Cluster;
let suite: CoilSuite;
let commands: string;

beforeAll(async () => {
  // Nodes see what this machine has installed.
  await needCommands(["curl", "jq"]);
  suite = await coilSuite();
  const images = await coilImages(suite);
  cluster = await upOneNode(COIL, {
    nodes: Object.keys(NODE_NAMES).length,
    images: async () => [...(await imageTarballs()), ...images],
  });
  await installChart(cluster);
  await cluster.kubectl([
    "scale",
    "deployment",
    "egress-nat-operator",
    "--replicas=2",
    "-n",
    RELEASE.namespace,
  ]);
  for (const [name, hostname] of Object.entries(NODE_NAMES)) {
    const labels = [`kubernetes.io/hostname=${hostname}`, ...(name === "node1" ? [] : ["test=coil"])];
    await cluster.kubectl(["label", "node", name, "--overwrite", ...labels]);
    await cluster.node(name).run(`install -m 755 ${join(suite.image, ECHOTEST)} /usr/local/bin/`);
  }
  commands = await mkdtemp(join(tmpdir(), "egress-nat-coil-"));
  await standIns();
}, SUITE_TIMEOUT_MS);

afterAll(async () => {
  await removeCluster(COIL);
  if (commands !== undefined) await rm(commands, { recursive: true });
});

test("coil's own end-to-end suite passes in its egress context", { timeout: SUITE_TIMEOUT_MS }, async () => {
  const inside = cluster.kubectlCommand.slice(0, cluster.kubectlCommand.indexOf("--") + 1);
  const [file = "", ...args] = [...inside, suite.program, "-test.v", "-ginkgo.v"];
  const { exitCode, all } = await execa(file, args, {
    cwd: join(commands, "e2e"),
    all: true,
    reject: false,
    env: {
      PATH: `${commands}:${process.env.PATH}`,
      KUBECONFIG: cluster.controlPlane.kubeconfig,
      KUBECTL: cluster.kubectlCommand.at(-2),
      NETWORK_INTERFACE: cluster.plan.bridge,
      ...{ TEST_IPAM: "false", TEST_EGRESS: "true", TEST_ORIGINATINGONLY: "true" },
      ...{ TEST_IPV4: "true", TEST_IPV6: "true" },
    },
  });
  expect(exitCode, all).toBe(0);
  expect(all).toMatch(/Ran 7 of 7 Specs/);
});

/** A `docker`, and a folder to run in that the suite may write to. */
async function standIns(): Promise<void> {
  const program = join(import.meta.dirname, "docker.ts");
  const script = `#!/bin/sh\nexec ${process.execPath} --conditions=source ${program} "$@"\n`;
  await writeFile(join(commands, "docker"), script, { mode: 0o755 });
  await mkdir(join(commands, "e2e"));
  await symlink(join(suite.folder, "manifests"), join(commands, "e2e/manifests"));
}
