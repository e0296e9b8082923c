import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatAddress, parseCidr } from "@egress-nat/addresses";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import { inNetns } from "../system/network-namespace.ts";
import { BackgroundProcess } from "../system/process.ts";
import { Authority, type Identity, type KeyPair } from "./authority.ts";
import {
  apiserverUrl,
  type ControlPlaneComponent,
  ControlPlanePlan,
  componentCommand,
  componentsOf,
  etcdUrl,
} from "./control-plane-commands.ts";
import { kubernetesBinary } from "./kubernetes-binary.ts";

const READY_TIMEOUT_MS = 120_000;
const PLAN_FILE = "control-plane.json";

/** A running control plane: etcd and the apiserver and, if planned, controller manager and scheduler. */
export class ControlPlane {
  readonly plan: ControlPlanePlan;
  /** The apiserver's URL. */
  readonly url: string;
  /** Path of the certificate of the cluster's authority. */
  readonly ca: string;
  /** Path of a cluster administrator's kubeconfig, self-contained. */
  readonly kubeconfig: string;
  readonly etcdUrl: string;
  readonly #authority: Authority;
  readonly #binary: string;

  private constructor(plan: ControlPlanePlan, authority: Authority, binary: string) {
    this.plan = plan;
    this.url = apiserverUrl(plan);
    this.ca = authority.certificate;
    this.kubeconfig = join(plan.folder, "kubeconfig", "admin");
    this.etcdUrl = etcdUrl(plan);
    this.#authority = authority;
    this.#binary = binary;
  }

  /** A control plane of a new state folder; nothing runs yet. */
  static async create(plan: ControlPlanePlan): Promise<ControlPlane> {
    await needCommands(["curl", "nsenter", "openssl", "setpriv"]);
    await mkdir(join(plan.folder, "kubeconfig"), { recursive: true });
    const [authority, binary] = await Promise.all([
      Authority.open(join(plan.folder, "pki")),
      kubernetesBinary(plan.kubernetes),
    ]);
    const controlPlane = new ControlPlane(plan, authority, binary);
    const serviceAddresses = plan.serviceCidrs.map(firstAddress);
    await Promise.all([
      authority.keyPair("service-accounts"),
      authority.issue("apiserver", {
        commonName: "kube-apiserver",
        hosts: [
          "localhost",
          "kubernetes.default",
          "kubernetes.default.svc",
          "127.0.0.1",
          plan.address,
          ...serviceAddresses,
        ],
      }),
      authority.issue("kubelet-client", { commonName: "kube-apiserver", organization: "system:masters" }),
      controlPlane.issueKubeconfig("admin", { commonName: "admin", organization: "system:masters" }),
      controlPlane.issueKubeconfig("controller-manager", { commonName: "system:kube-controller-manager" }),
      controlPlane.issueKubeconfig("scheduler", { commonName: "system:kube-scheduler" }),
    ]);
    await writeFile(join(plan.folder, PLAN_FILE), JSON.stringify(plan, undefined, 2));
    return controlPlane;
  }

  /** The control plane of a state folder that {@link create} made, in this program or an earlier one. */
  static async open(folder: string): Promise<ControlPlane> {
    const plan = ControlPlanePlan.parse(JSON.parse(await readFile(join(folder, PLAN_FILE), "utf8")));
    const [authority, binary] = await Promise.all([
      Authority.open(join(folder, "pki")),
      kubernetesBinary(plan.kubernetes),
    ]);
    return new ControlPlane(plan, authority, binary);
  }

  /** Starts what does not run yet, and waits until it is ready. */
  async startAll(): Promise<void> {
    const missing = componentsOf(this.plan).filter(
      (component) => this.process(component).pid() === undefined,
    );
    for (const component of missing) await this.start(component);
  }

  /**
   * Starts one component and waits until it is ready.
   *
   * @param lifetime `detached` from a program that ends before the cluster does
   */
  async start(component: ControlPlaneComponent, lifetime = this.plan.lifetime): Promise<void> {
    const running = await BackgroundProcess.start({
      name: component,
      command: [this.#binary, ...componentCommand(this.plan, component)],
      folder: this.plan.folder,
      netns: this.plan.netns,
      lifetime,
    });
    await waitUntil(
      async () => {
        running.assertRunning();
        return this.#isReady(component);
      },
      {
        what: `${component} to be ready`,
        timeoutMs: READY_TIMEOUT_MS,
        explain: () => running.failure("is not ready").message,
      },
    );
  }

  /** Ends one component at once (SIGKILL), as a crash would. */
  async kill(component: ControlPlaneComponent): Promise<void> {
    await this.process(component).kill();
  }

  /** Stops one component in its tracks: its connections stay open and nothing answers. */
  pause(component: ControlPlaneComponent): void {
    this.process(component).signal("SIGSTOP");
  }

  /** Lets a paused component go on. */
  resume(component: ControlPlaneComponent): void {
    this.process(component).signal("SIGCONT");
  }

  /** Ends all components. The state folder stays. */
  async stop(): Promise<void> {
    for (const component of componentsOf(this.plan).toReversed()) await this.kill(component);
  }

  process(component: ControlPlaneComponent): BackgroundProcess {
    return new BackgroundProcess(this.plan.folder, component);
  }

  /** A certificate of the cluster's authority. */
  issue(name: string, identity: Identity): Promise<KeyPair> {
    return this.#authority.issue(name, identity);
  }

  /**
   * A self-contained kubeconfig for a user or node.
   *
   * @returns its path, `kubeconfig/NAME` in the state folder
   */
  async issueKubeconfig(name: string, identity: Identity): Promise<string> {
    const path = join(this.plan.folder, "kubeconfig", name);
    const text = await this.#authority.kubeconfig(this.url, await this.issue(name, identity));
    await writeFile(path, text, { mode: 0o600 });
    return path;
  }

  async #isReady(component: ControlPlaneComponent): Promise<boolean> {
    switch (component) {
      case "etcd":
        return this.#answers(`${this.etcdUrl}/health`, []);
      case "apiserver": {
        const pki = (file: string): string => join(this.plan.folder, "pki", file);
        return this.#answers(`${this.url}/readyz`, [
          ["--cacert", this.ca],
          ["--cert", pki("admin.crt")],
          ["--key", pki("admin.key")],
        ]);
      }
      case "controller-manager":
        return this.#answers(`https://127.0.0.1:${this.plan.ports.controllerManager}/healthz`, [
          ["--insecure"],
        ]);
      case "scheduler":
        return this.#answers(`https://127.0.0.1:${this.plan.ports.scheduler}/healthz`, [["--insecure"]]);
    }
  }

  /** Asked by curl, because a Node program cannot enter another network namespace. */
  async #answers(url: string, flags: readonly (readonly string[])[]): Promise<boolean> {
    const command = ["curl", "--silent", "--fail", "--noproxy", "*", "--max-time", "2", ...flags.flat(), url];
    const [file, ...arguments_] = inNetns(this.plan.netns, command) as [string, ...string[]];
    const { exitCode } = await execa(file, arguments_, { reject: false });
    return exitCode === 0;
  }
}

/** Creates a control plane in a new state folder and starts it: ready in about three seconds. */
export async function startControlPlane(plan: ControlPlanePlan): Promise<ControlPlane> {
  const controlPlane = await ControlPlane.create(plan);
  await controlPlane.startAll();
  return controlPlane;
}

function firstAddress(cidr: string): string {
  const network = parseCidr(cidr);
  if (network === undefined) throw new Error(`${cidr} is not a CIDR`);
  return formatAddress(network.family, network.first + 1n);
}
