import { copyFile, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ImageTarball } from "@egress-nat/tools/images";
import { cachedFolder, contentHash, exists, keepNewest } from "@egress-nat/tools/system/cache";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import { BackgroundProcess } from "../system/process.ts";

/** Room for what pods write and for images that are loaded later; sparse, it takes no space on the host. */
const FREE_MIB = 6144;
/** Every change of the product makes another disk. */
const DISKS_KEPT = 3;

const CNI_PLUGINS = ["bridge", "host-local", "loopback", "portmap"];
const CNI_PLUGIN_FOLDER = "/usr/lib/cni";
const PROGRAMS = [
  "/usr/bin/containerd",
  "/usr/bin/containerd-shim-runc-v2",
  "/usr/bin/ctr",
  "/usr/sbin/runc",
];

/**
 * An ext4 image with everything that a node runs: Kubernetes, containerd, CNI plugins and images that are imported
 * already. containerd imports them here, where it takes seconds; emulated it takes minutes.
 *
 * @param kubernetes path of the executable that is kubelet and kube-proxy
 * @param images in the order in which they are imported: an image may lack layers that an earlier one has
 * @returns the path of the image in the cache
 */
export async function nodeDisk(kubernetes: string, images: readonly ImageTarball[]): Promise<string> {
  await needCommands(["containerd", "ctr", "mkfs.ext4", "runc"], {
    [`${CNI_PLUGIN_FOLDER}/bridge`]: "containernetworking-plugins",
  });
  const versions = await Promise.all(PROGRAMS.map(async (file) => `${file} ${(await stat(file)).mtimeMs}`));
  const key = await contentHash({ texts: [kubernetes, ...versions, ...images.map(({ digest }) => digest)] });
  const folder = await cachedFolder("node-disk", key, async (draft) => {
    const root = join(draft, "root");
    await mkdir(join(root, "bin"), { recursive: true });
    await mkdir(join(root, "cni"));
    await copyFile(kubernetes, join(root, "bin", "kubernetes"));
    for (const file of PROGRAMS) await copyFile(file, join(root, "bin", basename(file)));
    for (const plugin of CNI_PLUGINS)
      await copyFile(join(CNI_PLUGIN_FOLDER, plugin), join(root, "cni", plugin));
    await importImages(join(root, "containerd"), images);
    await makeFileSystem(root, join(draft, "disk.ext4"));
    await rm(root, { recursive: true });
  });
  await keepNewest(folder, DISKS_KEPT);
  return join(folder, "disk.ext4");
}

async function importImages(root: string, images: readonly ImageTarball[]): Promise<void> {
  const state = join(dirname(root), "..", "state");
  const socket = join(state, "containerd.sock");
  await mkdir(state, { recursive: true });
  const config = join(state, "config.toml");
  await writeFile(config, 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n');
  const containerd = await BackgroundProcess.start({
    name: "containerd",
    folder: state,
    lifetime: "owner",
    command: [
      "containerd",
      "--config",
      config,
      "--root",
      root,
      "--state",
      join(state, "state"),
      "--address",
      socket,
      "--log-level",
      "warn",
    ],
  });
  const ctr = (...arguments_: string[]): ReturnType<typeof execa> =>
    execa("ctr", ["--address", socket, "--namespace", "k8s.io", ...arguments_]);
  try {
    await waitUntil(
      async () => {
        containerd.assertRunning();
        return (
          (await exists(socket)) &&
          (await ctr("version").then(
            () => true,
            () => false,
          ))
        );
      },
      {
        what: "containerd to answer",
        timeoutMs: 30_000,
        explain: () => containerd.failure("does not answer").message,
      },
    );
    for (const { name, file } of images) {
      await ctr("images", "import", file).catch((cause: unknown) => {
        throw new ToolError("image-import-failed", `cannot import the image ${name} from ${file}`, {
          cause,
        });
      });
    }
  } finally {
    // An orderly end writes its database out.
    containerd.signal("SIGTERM");
    await waitUntil(() => containerd.pid() === undefined, {
      what: "the end of containerd",
      timeoutMs: 10_000,
    });
    await rm(state, { recursive: true });
  }
}

async function makeFileSystem(root: string, file: string): Promise<void> {
  const { stdout } = await execa("du", ["--summarize", "--block-size=1M", root]);
  const usedMiB = Number(stdout.split("\t")[0]);
  await execa("mkfs.ext4", [
    ...["-q", "-F", "-d", root, "-O", "^has_journal", "-E", "lazy_itable_init=1", "-m", "0"],
    ...[file, `${Math.ceil(usedMiB * 1.1) + FREE_MIB}M`],
  ]);
}
