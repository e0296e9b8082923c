import { mkdir } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { ImageTarball } from "@egress-nat/tools/images";
import { helmBinary, kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { Listr, type ListrTask } from "listr2";
import prettyMilliseconds from "pretty-ms";
import { accelerator } from "../vm/accelerator.ts";
import { vmKit } from "../vm/kit.ts";
import { Cluster, isUp, readRecord, removeCluster, writeRecord } from "./cluster.ts";
import { ControlPlane } from "./control-plane.ts";
import { corednsImage } from "./coredns-image.ts";
import { dnsManifests } from "./dns.ts";
import { startInternet } from "./internet.ts";
import { kubernetesBinary } from "./kubernetes-binary.ts";
import { createNetwork } from "./network.ts";
import { nodeDisk } from "./node-disk.ts";
import { type ClusterOptions, type ClusterPlan, planCluster, planControlPlane } from "./plan.ts";

/** How progress is shown: `default` redraws a terminal, `simple` writes lines, `silent` nothing. */
type Renderer = "default" | "simple" | "silent";

export interface UpOptions extends ClusterOptions {
  /** The images that the nodes start with; called while other things are being built. */
  readonly images: () => Promise<readonly ImageTarball[]>;
  readonly renderer: Renderer;
}

interface Progress {
  images?: readonly ImageTarball[];
  disk?: string;
  cluster?: Cluster;
}

/**
 * Brings a cluster up. One that is up already with the same options is left as it is; what a broken `up` or a restart of the
 * machine left behind is removed first.
 *
 * @throws ToolError `not-root`, `other-options`, and whatever a step throws
 */
export async function upCluster({ images, renderer, ...options }: UpOptions): Promise<Cluster> {
  if (process.getuid?.() !== 0) {
    throw new ToolError("not-root", "network namespaces and virtual machines need root: run this as root");
  }
  const plan = planCluster(options);
  if (await isUp(options.name)) {
    const record = await readRecord(options.name);
    if (!isDeepStrictEqual(record?.options, plan.options)) {
      throw new ToolError(
        "other-options",
        `cluster ${options.name} is up with other options (${JSON.stringify(record?.options)}): ` +
          `end it first with npm run cluster -- down --name ${options.name}`,
      );
    }
    return Cluster.open(options.name);
  }
  const progress: Progress = {};
  await new Listr(tasks(plan, images), {
    ctx: progress,
    renderer,
    rendererOptions: { timer: ELAPSED, collapseSubtasks: false },
    // What an interruption leaves to do is the caller's to say; Listr would end the process at once.
    registerSignalListeners: false,
  }).run();
  return progress.cluster as Cluster;
}

const ELAPSED = {
  condition: true,
  field: (ms: number): string => prettyMilliseconds(ms),
  format: (): ((text?: string | string[]) => string) => (text) => String(text),
};

function tasks(plan: ClusterPlan, images: UpOptions["images"]): ListrTask<Progress>[] {
  const { options } = plan;
  const concurrently = { concurrent: true } as const;
  return [
    {
      title: "Remove what an earlier run left",
      enabled: async () => (await readRecord(options.name)) !== undefined,
      task: () => removeCluster(options.name),
    },
    {
      title: "Debian packages",
      task: () =>
        needCommands(
          [
            "busybox",
            "containerd",
            "cpio",
            "curl",
            "ip",
            "iptables",
            "nft",
            "conntrack",
            "qemu-system-x86_64",
            "socat",
            "sysctl",
          ],
          { "/usr/lib/cni/bridge": "containernetworking-plugins" },
        ),
    },
    {
      title: "Programs and images",
      task: (_, task) =>
        task.newListr(
          [
            { title: "Kubernetes", task: async () => void (await kubernetesBinary(options.kubernetes)) },
            {
              title: "kubectl and helm",
              task: async () => void (await Promise.all([kubectlBinary(), helmBinary()])),
            },
            { title: "kernel", task: async () => void (await accelerator(await vmKit())) },
            {
              title: "images",
              task: async (progress: Progress) => {
                progress.images = [...(await images()), await corednsImage()];
              },
            },
          ],
          concurrently,
        ),
    },
    {
      title: "Disk of the nodes",
      task: async (progress) => {
        progress.disk = await nodeDisk(await kubernetesBinary(options.kubernetes), progress.images ?? []);
      },
    },
    {
      title: "Network",
      task: async (progress) => {
        await mkdir(plan.folder, { recursive: true, mode: 0o700 });
        await writeRecord(record(progress, false));
        await createNetwork(plan);
      },
    },
    {
      title: "Control plane, internet and nodes",
      task: (progress, task) => {
        const created = ControlPlane.create(planControlPlane(plan)).then(async (controlPlane) => {
          progress.cluster = await Cluster.of(plan, controlPlane);
          return progress.cluster;
        });
        const ready = created.then((cluster) => cluster.controlPlane.startAll());
        return task.newListr(
          [
            { title: "control plane", task: () => ready },
            { title: "internet", task: () => startInternet(plan) },
            ...plan.nodes.map(({ name }) => ({
              title: name,
              task: async (): Promise<void> => {
                const cluster = await created;
                const node = cluster.node(name);
                await node.boot(progress.disk as string);
                await ready;
                await node.startPrograms(cluster.controlPlane);
                await cluster.connectPods(node);
              },
            })),
          ],
          concurrently,
        );
      },
    },
    {
      title: "Cluster DNS",
      task: (progress) => cluster(progress).apply(...dnsManifests(plan)),
    },
    {
      title: "Everything ready",
      task: async (progress) => {
        await untilReady(cluster(progress));
        await writeRecord(record(progress, true));
      },
    },
  ];

  function record({ disk }: Progress, complete: boolean): Parameters<typeof writeRecord>[0] {
    return { options, disk, complete };
  }
}

function cluster(progress: Progress): Cluster {
  return progress.cluster as Cluster;
}

async function untilReady(cluster: Cluster): Promise<void> {
  const timeout = "--timeout=180s";
  await Promise.all([
    cluster.kubectl(["wait", "nodes", "--all", "--for=condition=Ready", timeout]),
    cluster.kubectl(["rollout", "status", "deployment/coredns", "--namespace=kube-system", timeout]),
    // Pods are refused until the controller manager has made it.
    waitUntil(() => cluster.kubectl(["get", "serviceaccount", "default"]), {
      what: "the ServiceAccount default",
      timeoutMs: 60_000,
      intervalMs: 250,
    }),
  ]);
}
