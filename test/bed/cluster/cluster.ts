import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ImageTarball } from "@egress-nat/tools/images";
import { helmBinary, kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import { z } from "zod";
import { inNetns, ipBatch, netnsPath } from "../system/network-namespace.ts";
import { BackgroundProcess, lastLines } from "../system/process.ts";
import { ControlPlane } from "./control-plane.ts";
import { componentsOf } from "./control-plane-commands.ts";
import { insideInternet, internetProcess } from "./internet.ts";
import { podRoutes, removeNetwork } from "./network.ts";
import { ClusterNode } from "./node.ts";
import { ClusterOptions, type ClusterPlan, clusterFolder, planCluster, planControlPlane } from "./plan.ts";

const RECORD_FILE = "cluster.json";
const COMMAND_TIMEOUT_MS = 300_000;
const REGISTRATION_TIMEOUT_MS = 180_000;

/** What the state folder says about a cluster. */
const ClusterRecord = z.object({
  options: ClusterOptions,
  /** The node disk that its machines boot with. */
  disk: z.string().optional(),
  /** False while it is being brought up; a cluster whose `up` broke off stays so. */
  complete: z.boolean(),
});
export type ClusterRecord = z.infer<typeof ClusterRecord>;

export interface CommandOptions {
  readonly input?: string;
  readonly timeoutMs?: number;
}

const NodeObject = z.object({ spec: z.object({ podCIDRs: z.array(z.string()).min(1) }) });

/** A cluster that is up, or being brought up: a control plane, nodes and an internet. */
export class Cluster {
  readonly name: string;
  readonly plan: ClusterPlan;
  readonly controlPlane: ControlPlane;
  readonly nodes: readonly ClusterNode[];
  /** kubectl with what must come before its arguments, to be run anywhere on this machine. */
  readonly kubectlCommand: readonly string[];
  /** helm, likewise. */
  readonly helmCommand: readonly string[];
  /** What must come before a command to run it where the internet's servers are. */
  readonly insideInternet: readonly string[];

  private constructor(plan: ClusterPlan, controlPlane: ControlPlane, kubectl: string, helm: string) {
    this.name = plan.options.name;
    this.plan = plan;
    this.controlPlane = controlPlane;
    this.nodes = plan.nodes.map((node) => new ClusterNode(plan, node));
    const netns = netnsPath(plan.netns);
    this.kubectlCommand = inNetns(netns, [kubectl, `--kubeconfig=${controlPlane.kubeconfig}`]);
    this.helmCommand = inNetns(netns, [helm, `--kubeconfig=${controlPlane.kubeconfig}`]);
    this.insideInternet = insideInternet(plan);
  }

  /** A cluster whose control plane's state folder is there. */
  static async of(plan: ClusterPlan, controlPlane: ControlPlane): Promise<Cluster> {
    return new Cluster(plan, controlPlane, await kubectlBinary(), await helmBinary());
  }

  /**
   * A cluster that is up.
   *
   * @throws ToolError `cluster-not-up`
   */
  static async open(name: string): Promise<Cluster> {
    const record = await readRecord(name);
    if (record?.complete !== true) {
      throw new ToolError(
        "cluster-not-up",
        `cluster ${name} is not up: run npm run cluster -- up --name ${name}`,
      );
    }
    const plan = planCluster(record.options);
    return Cluster.of(plan, await ControlPlane.open(plan.folder));
  }

  /** @throws ToolError `no-such-node` */
  node(name: string): ClusterNode {
    const node = this.nodes.find((candidate) => candidate.name === name);
    if (node === undefined) {
      const names = this.nodes.map((candidate) => candidate.name).join(", ");
      throw new ToolError("no-such-node", `cluster ${this.name} has no node ${name}; it has ${names}`);
    }
    return node;
  }

  /** Runs kubectl as administrator and returns what it wrote to stdout; throws when it fails. */
  kubectl(args: readonly string[], options: CommandOptions = {}): Promise<string> {
    return runCommand([...this.kubectlCommand, ...args], options);
  }

  /** Runs helm as administrator and returns what it wrote to stdout; throws when it fails. */
  helm(args: readonly string[], options: CommandOptions = {}): Promise<string> {
    return runCommand([...this.helmCommand, ...args], options);
  }

  /** `kubectl apply` of objects. */
  async apply(...objects: readonly object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await this.kubectl(["apply", "--filename=-"], { input: JSON.stringify(list) });
  }

  /** Imports images into every node that does not have them yet. */
  async loadImages(images: readonly ImageTarball[]): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.loadImages(images)));
  }

  /** The processes of this cluster on this machine, by name, with their pids; undefined for one that does not run. */
  processes(): ReadonlyMap<string, number | undefined> {
    const background = [
      ...componentsOf(this.controlPlane.plan).map((component) => this.controlPlane.process(component)),
      internetProcess(this.plan),
    ];
    return new Map([
      ...background.map((one) => [one.name, one.pid()] as const),
      ...this.nodes.map((node) => [node.name, node.machine.pid()] as const),
    ]);
  }

  /**
   * Boots a node and takes it into the cluster: new, or again after {@link ClusterNode.kill}. Its images are those of
   * the cluster's disk. Returns when its pods have a network; kubelet reports Ready soon after.
   */
  async startNode(name: string, lifetime = this.plan.options.lifetime): Promise<void> {
    const record = await readRecord(this.name);
    const node = this.node(name);
    await node.boot(record?.disk ?? "", lifetime);
    await node.startPrograms(this.controlPlane);
    await this.connectPods(node);
  }

  /** Gives a node's pods the podCIDRs of its Node object, and makes the routes between them and all others. */
  async connectPods(node: ClusterNode): Promise<void> {
    const podCidrs = await this.#podCidrs(node);
    await ipBatch(netnsPath(this.plan.netns), podRoutes(node.plan, podCidrs));
    await node.startPodNetwork(podCidrs);
    for (const other of this.nodes) {
      if (other === node || !other.machine.isRunning()) continue;
      await other.routeTo(node, podCidrs);
      const theirs = await this.#registeredPodCidrs(other);
      if (theirs !== undefined) await node.routeTo(other, theirs);
    }
  }

  #podCidrs(node: ClusterNode): Promise<readonly string[]> {
    const log = join(this.plan.folder, "logs", node.name, "kubelet.log");
    return waitUntil(() => this.#registeredPodCidrs(node), {
      what: `${node.name} to register itself and get its podCIDRs; the end of ${log}:`,
      timeoutMs: REGISTRATION_TIMEOUT_MS,
      intervalMs: 250,
      explain: () => lastLines(log),
    });
  }

  async #registeredPodCidrs(node: ClusterNode): Promise<readonly string[] | undefined> {
    const answer = await this.kubectl(["get", "node", node.name, "--ignore-not-found", "--output=json"]);
    if (answer === "") return undefined;
    return NodeObject.safeParse(JSON.parse(answer)).data?.spec.podCIDRs;
  }
}

/** Writes down what is being brought up, so that whoever comes later can tell what is there, and end it. */
export async function writeRecord(record: ClusterRecord): Promise<void> {
  const file = join(clusterFolder(record.options.name), RECORD_FILE);
  await writeFile(file, JSON.stringify(record, undefined, 2));
}

/** What the state folder says about a cluster; undefined when there is none. */
export async function readRecord(name: string): Promise<ClusterRecord | undefined> {
  const text = await readFile(join(clusterFolder(name), RECORD_FILE), "utf8").catch(() => undefined);
  return text === undefined ? undefined : ClusterRecord.parse(JSON.parse(text));
}

/** The names of the clusters that have a state folder. */
export async function clusterNames(): Promise<readonly string[]> {
  return readdir(dirname(clusterFolder("any"))).catch(() => []);
}

/** Ends a cluster and removes its namespaces and its state; succeeds when there is nothing, or only half of it. */
export async function removeCluster(name: string): Promise<void> {
  const record = await readRecord(name);
  const plan = planCluster(
    record?.options ?? {
      ...{ name, nodes: 1, ranges: "private", proxyMode: "nftables" },
      ...{ kubernetes: "newest", lifetime: "detached" },
    },
  );
  const records = await readdir(join(plan.folder, "run")).catch(() => []);
  const names = records
    .filter((file) => file.endsWith(".json"))
    .map((file) => file.slice(0, -".json".length));
  await Promise.all(names.map((process) => new BackgroundProcess(plan.folder, process).kill()));
  await removeNetwork(plan);
  await rm(plan.folder, { recursive: true, force: true });
}

/** Whether a cluster is up with all its processes. */
export async function isUp(name: string): Promise<boolean> {
  const record = await readRecord(name);
  if (record?.complete !== true) return false;
  const plan = planCluster(record.options);
  const processes = [
    ...componentsOf(planControlPlane(plan)),
    internetProcess(plan).name,
    ...plan.nodes.map((node) => node.name),
  ];
  return processes.every((process) => new BackgroundProcess(plan.folder, process).pid() !== undefined);
}

async function runCommand(command: readonly string[], options: CommandOptions): Promise<string> {
  const [file, ...args] = command as [string, ...string[]];
  const { stdout } = await execa(file, args, {
    ...(options.input === undefined ? { stdin: "ignore" } : { input: options.input }),
    timeout: options.timeoutMs ?? COMMAND_TIMEOUT_MS,
  });
  return stdout;
}
