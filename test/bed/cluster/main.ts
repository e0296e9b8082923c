import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { imageTarballs } from "@egress-nat/tools/images";
import { runCommand } from "@egress-nat/tools/system/run-command";
import { Command, InvalidArgumentError, Option } from "commander";
import prettyMilliseconds from "pretty-ms";
import { Cluster, clusterNames, isUp, readRecord, removeCluster } from "./cluster.ts";
import { ControlPlaneComponent, withDependents } from "./control-plane-commands.ts";
import { KubernetesVersion } from "./kubernetes-binary.ts";
import { nodeShell } from "./node-shell.ts";
import { type ClusterOptions, clusterFolder, MAX_NODES, ProxyMode, RangesName } from "./plan.ts";
import { upCluster } from "./up.ts";

const program = new Command("npm run cluster --")
  .description(
    "A real Kubernetes cluster on this machine: control plane, one to three virtual machines as nodes, and an internet " +
      "that answers with the source address it saw. No packet of it leaves the machine.",
  )
  .enablePositionalOptions()
  .showHelpAfterError();

const nameOption = () => new Option("--name <name>", "name of the cluster").default("demo");

interface Named {
  readonly name: string;
}

type UpFlags = Pick<ClusterOptions, "nodes" | "ranges" | "proxyMode" | "kubernetes">;

program
  .command("up")
  .description("bring a cluster up, with the images of this checkout; does nothing when it is up already")
  .addOption(nameOption())
  .addOption(new Option("--nodes <number>", `1 to ${MAX_NODES} nodes`).default(2).argParser(nodeCount))
  .addOption(
    new Option(
      "--ranges <ranges>",
      "private: pods and Services in private ranges; mixed: in ranges that are not",
    )
      .choices(RangesName.options)
      .default("private"),
  )
  .addOption(
    new Option("--proxy-mode <mode>", "how kube-proxy programs Services")
      .choices(ProxyMode.options)
      .default("nftables"),
  )
  .addOption(
    new Option("--kubernetes <version>", "which of the versions that the product supports")
      .choices(KubernetesVersion.options)
      .default("newest"),
  )
  .action(async (options: Named & UpFlags) => {
    const started = Date.now();
    const wasUp = await isUp(options.name);
    const cluster = await upCluster({
      ...options,
      lifetime: "detached",
      images: imageTarballs,
      renderer: process.stdout.isTTY ? "default" : "simple",
    });
    const flag = options.name === "demo" ? "" : ` --name ${options.name}`;
    console.log(
      wasUp
        ? `cluster ${options.name} is up already`
        : `cluster ${options.name} is up after ${prettyMilliseconds(Date.now() - started)}`,
    );
    console.log(`  look around   npm run cluster -- shell${flag}`);
    console.log(`  logs          ${cluster.plan.folder}/logs`);
    console.log(`  end it        npm run cluster -- down${flag}`);
  });

program
  .command("down")
  .description("end a cluster, or what is left of one; does nothing when there is none")
  .addOption(nameOption())
  .action(async ({ name }: Named) => {
    await removeCluster(name);
    console.log(`cluster ${name} is gone`);
  });

program
  .command("status")
  .description("show what runs, of one cluster or of all; the exit code is 1 when something does not")
  .option("--name <name>", "name of the cluster")
  .action(async ({ name }: Partial<Named>) => {
    const names = name === undefined ? await clusterNames() : [name];
    if (names.length === 0) console.log("no clusters");
    for (const each of names) if (!(await showStatus(each))) process.exitCode = 1;
  });

program
  .command("shell")
  .description("a shell in the cluster's network with kubectl and helm, or on a node")
  .argument("[node]", "such as node1; absent: where the control plane is")
  .addOption(nameOption())
  .action(async (node: string | undefined, { name }: Named) => {
    const cluster = await Cluster.open(name);
    if (node !== undefined) process.exitCode = await nodeShell(cluster.node(node));
    else await inForeground(controlPlaneShell(cluster), shellEnvironment(cluster));
  });

for (const tool of ["kubectl", "helm"] as const) {
  program
    .command(tool)
    .description(`run ${tool} as the cluster's administrator`)
    .addOption(nameOption())
    .argument("[arguments...]")
    .passThroughOptions()
    .allowUnknownOption()
    .helpOption(false)
    .action(async (args: string[], { name }: Named) => {
      const cluster = await Cluster.open(name);
      await inForeground([...cluster[`${tool}Command`], ...args]);
    });
}

program
  .command("load-images")
  .description("build the images of this checkout and import those that changed into every node")
  .addOption(nameOption())
  .action(async ({ name }: Named) => {
    const cluster = await Cluster.open(name);
    const images = await imageTarballs();
    await cluster.loadImages(images);
    for (const image of images) console.log(`${image.name}  ${image.digest}`);
  });

program
  .command("stop")
  .description(
    "end one part at once, as a crash would: a node, or a component of the control plane; controllers end with the apiserver",
  )
  .argument("<part>", `node1 ... or one of ${ControlPlaneComponent.options.join(", ")}`)
  .addOption(nameOption())
  .action(async (part: string, { name }: Named) => {
    const cluster = await Cluster.open(name);
    const component = ControlPlaneComponent.safeParse(part);
    if (!component.success) return cluster.node(part).kill();
    for (const each of withDependents(component.data)) await cluster.controlPlane.kill(each);
  });

program
  .command("start")
  .description("start a part that was stopped, and wait for it")
  .argument("<part>", "as for stop")
  .addOption(nameOption())
  .action(async (part: string, { name }: Named) => {
    const cluster = await Cluster.open(name);
    const component = ControlPlaneComponent.safeParse(part);
    // Also in a cluster that ends with its owner: this program is not it, and ends at once.
    if (!component.success) return cluster.startNode(part, "detached");
    for (const each of withDependents(component.data)) await cluster.controlPlane.start(each, "detached");
  });

function nodeCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= MAX_NODES) return count;
  throw new InvalidArgumentError(`It must be 1 to ${MAX_NODES}.`);
}

async function showStatus(name: string): Promise<boolean> {
  const record = await readRecord(name);
  if (record?.complete !== true) {
    console.log(
      `${name}: ${record === undefined ? "does not exist" : "not complete: its up is running or broke off"}`,
    );
    return false;
  }
  const { nodes, ranges, proxyMode } = record.options;
  console.log(
    `${name}: ${nodes} nodes, ${ranges} ranges, kube-proxy in ${proxyMode} mode; ${clusterFolder(name)}`,
  );
  const processes = (await Cluster.open(name)).processes();
  for (const [process, pid] of processes) {
    console.log(`  ${process.padEnd(20)} ${pid === undefined ? "stopped" : `pid ${pid}`}`);
  }
  return [...processes.values()].every((pid) => pid !== undefined);
}

function controlPlaneShell(cluster: Cluster): readonly string[] {
  return [
    ...cluster.kubectlCommand.slice(0, cluster.kubectlCommand.indexOf("--") + 1),
    process.env.SHELL ?? "/bin/sh",
  ];
}

function shellEnvironment(cluster: Cluster): NodeJS.ProcessEnv {
  const folders = [cluster.kubectlCommand, cluster.helmCommand].map((command) =>
    dirname(command.at(-2) ?? ""),
  );
  return { KUBECONFIG: cluster.controlPlane.kubeconfig, PATH: [...folders, process.env.PATH].join(":") };
}

function inForeground(command: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<void> {
  const [file, ...args] = command as [string, ...string[]];
  const child = spawn(file, args, { stdio: "inherit", env: { ...process.env, ...environment } });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => {
      process.exitCode = code ?? 1;
      resolve();
    });
  });
}

await runCommand(program);
