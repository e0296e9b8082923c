import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import type { ImageTarball } from "@egress-nat/tools/images";
import { ipBatch, netnsPath } from "../system/network-namespace.ts";
import { type ExecOptions, type ExecResult, type RunningCommand, startCommand } from "../vm/exec-channel.ts";
import { VirtualMachine } from "../vm/virtual-machine.ts";
import type { ControlPlane } from "./control-plane.ts";
import { podRoutes } from "./network.ts";
import { CNI_CONFLIST, cniConflist, NODE_DISK, nodeFiles } from "./node-files.ts";
import type { ClusterPlan, NodePlan } from "./plan.ts";

const MEMORY_MIB = 3072;
const MAX_CPUS = 2;

/** A program that runs in a container of a node. */
export interface CommandInContainer extends Omit<RunningCommand, "kill"> {
  /** Kills the program itself: to hang up, as elsewhere, would end the command that has started it, and nothing else. */
  kill(): Promise<void>;
}

/** A node of a cluster: a virtual machine with containerd, kubelet and kube-proxy. */
export class ClusterNode {
  readonly plan: NodePlan;
  readonly name: string;
  readonly machine: VirtualMachine;
  readonly #cluster: ClusterPlan;

  constructor(cluster: ClusterPlan, plan: NodePlan) {
    this.plan = plan;
    this.name = plan.name;
    this.machine = new VirtualMachine(cluster.folder, plan.name);
    this.#cluster = cluster;
  }

  /** Boots the machine. */
  async boot(disk: string, lifetime = this.#cluster.options.lifetime): Promise<void> {
    const { folder, netns } = this.#cluster;
    await mkdir(this.#logFolder, { recursive: true });
    await mkdir(this.#fileFolder, { recursive: true });
    await VirtualMachine.start({
      name: this.name,
      folder,
      memoryMiB: MEMORY_MIB,
      cpus: this.#cpus,
      lifetime,
      netns: netnsPath(netns),
      taps: [{ name: this.plan.tap, mac: this.plan.mac }],
      disks: [disk],
      shares: [this.#logFolder, this.#fileFolder],
      execPort: this.plan.execPort,
    });
  }

  /** Configures the booted machine and starts containerd, kubelet and kube-proxy; the node then registers itself. */
  async startPrograms(controlPlane: ControlPlane): Promise<void> {
    await this.#writeFiles(await this.#renderFiles(controlPlane));
    await this.machine.run(["bash", join(import.meta.dirname, "node-start.sh")], {
      env: {
        NODE_ADDRESSES: `${this.plan.ipv4}/24 ${this.plan.ipv6}/64`,
        NODE_GATEWAYS: `${this.#cluster.gateway.ipv4} ${this.#cluster.gateway.ipv6}`,
        NODE_FILES: this.#fileFolder,
        NODE_LOGS: this.#logFolder,
        NODE_DISK,
        NODE_IP: `${this.plan.ipv4},${this.plan.ipv6}`,
      },
    });
  }

  /**
   * Gives the node's pods their network, unless they had it before the node was started again. kubelet reports Ready soon
   * after.
   *
   * @param podCidrs from the Node's spec
   */
  async startPodNetwork(podCidrs: readonly string[]): Promise<void> {
    // By way of a rename: containerd reads the folder whenever something in it changes.
    const write = `cat > ${CNI_CONFLIST}.new && mv ${CNI_CONFLIST}.new ${CNI_CONFLIST}`;
    await this.machine.run(`[ -e ${CNI_CONFLIST} ] || { ${write}; }`, { input: cniConflist(podCidrs) });
  }

  /** Routes from this node to the pods of another. */
  async routeTo(other: ClusterNode, podCidrs: readonly string[]): Promise<void> {
    await this.machine.run(["ip", "-batch", "-"], {
      input: `${podRoutes(other.plan, podCidrs).join("\n")}\n`,
    });
  }

  /** Imports image tarballs that the node does not have yet. */
  async loadImages(images: readonly ImageTarball[]): Promise<void> {
    const listed = await this.machine.run([...CTR, "images", "list"]);
    for (const { file, digest } of images) {
      if (!listed.includes(digest))
        await this.machine.run([...CTR, "images", "import", file], { timeoutMs: 600_000 });
    }
  }

  /** Gives its images of one tag another one, too. */
  async tagImages(tag: string, other: string): Promise<void> {
    const names = await this.machine.run([...CTR, "images", "list", "--quiet"]);
    for (const name of names.split("\n").filter((each) => each.endsWith(`:${tag}`))) {
      const copy = `${name.slice(0, -tag.length)}${other}`;
      await this.machine.run([...CTR, "images", "tag", "--force", name, copy]);
    }
  }

  /** Runs a bash script, or a program and its arguments, on the node. */
  exec(command: string | readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return this.machine.exec(command, options);
  }

  /** As {@link exec}; throws when the command fails, else returns what it wrote to stdout. */
  run(command: string | readonly string[], options: ExecOptions = {}): Promise<string> {
    return this.machine.run(command, options);
  }

  /**
   * Starts a program in a container, beside what runs there. Neither the apiserver nor the network has a part in it.
   *
   * @param containerId as containerd names it
   */
  startInContainer(
    containerId: string,
    command: readonly string[],
    onOutput: (stream: "stdout" | "stderr", data: Buffer) => void,
  ): CommandInContainer {
    const which = ["--exec-id", randomUUID(), containerId];
    const exec = [...CTR, "tasks", "exec", ...which, ...command];
    const running = startCommand(this.machine.execSocket, exec, {}, onOutput);
    const kill = async () => {
      // Of a program that has ended there is nothing to kill.
      await this.exec([...CTR, "tasks", "kill", "--signal", "SIGKILL", ...which]);
      running.kill();
    };
    return { ...running, kill };
  }

  /** Kills all processes of a container. */
  async killContainer(containerId: string): Promise<void> {
    await this.run([...CTR, "tasks", "kill", "--all", "--signal", "SIGKILL", containerId]);
  }

  /** Pulls the plug. Of what the node had on its disk only its CNI configuration stays. */
  kill(): Promise<void> {
    return this.machine.kill();
  }

  /** Pulls the network cable. */
  disconnect(): Promise<void> {
    return ipBatch(netnsPath(this.#cluster.netns), [`link set ${this.plan.tap} down`]);
  }

  /** Puts the network cable back. */
  connect(): Promise<void> {
    return ipBatch(netnsPath(this.#cluster.netns), [`link set ${this.plan.tap} up`]);
  }

  async #renderFiles(controlPlane: ControlPlane): Promise<Readonly<Record<string, string>>> {
    const identity = {
      commonName: `system:node:${this.name}`,
      organization: "system:nodes",
      hosts: [this.name, this.plan.ipv4, this.plan.ipv6],
    };
    const pair = await controlPlane.issue(this.name, identity);
    const read = (path: string): Promise<string> => readFile(path, "utf8");
    return nodeFiles(this.#cluster, this.plan, {
      ca: await read(controlPlane.ca),
      certificate: await read(pair.certificate),
      key: await read(pair.key),
      kubeletKubeconfig: await read(await controlPlane.issueKubeconfig(this.name, identity)),
      proxyKubeconfig: await read(
        await controlPlane.issueKubeconfig("kube-proxy", { commonName: "system:kube-proxy" }),
      ),
    });
  }

  // The share shows them to the node at the same path; node-start.sh copies them to where they belong.
  async #writeFiles(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [path, text] of Object.entries(files)) {
      const file = join(this.#fileFolder, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  }

  /** No more than the machine has for each node. */
  get #cpus(): number {
    const share = Math.floor(availableParallelism() / this.#cluster.nodes.length);
    return Math.max(1, Math.min(share, MAX_CPUS));
  }

  get #logFolder(): string {
    return join(this.#cluster.folder, "logs", this.name);
  }

  get #fileFolder(): string {
    return join(this.#cluster.folder, "nodes", this.name);
  }
}

const CTR = [`${NODE_DISK}/bin/ctr`, "--namespace", "k8s.io"];
