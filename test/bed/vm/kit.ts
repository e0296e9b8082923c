import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { cachedFolder, contentHash } from "@egress-nat/tools/system/cache";
import { needCommands, refreshPackageLists } from "@egress-nat/tools/system/debian-packages";
import { goProgram } from "@egress-nat/tools/system/go-program";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { execa } from "execa";
import { BOOT_MODULES } from "./kernel-modules.ts";

/**
 * Debian's kernel of this series. 6.12 dies in one of two boots under multi-threaded emulation: it patches its code
 * while other emulated CPUs run it.
 */
const KERNEL_SERIES = "6.1";

/** What a virtual machine boots from; all in one folder of the cache. */
export interface VirtualMachineKit {
  readonly folder: string;
  readonly kernel: string;
  readonly initrd: string;
  /** Such as "6.1.0-50-amd64". */
  readonly kernelRelease: string;
}

/** Makes the kit on first use: Debian's stock kernel with all its modules, and an initrd of busybox and a dozen modules. */
export async function vmKit(): Promise<VirtualMachineKit> {
  const initScript = join(import.meta.dirname, "guest", "initrd-init.sh");
  const execServer = await goProgram({
    name: "exec-server",
    folder: join(import.meta.dirname, "exec-server"),
  });
  const hash = await contentHash({ texts: [BOOT_MODULES.join()], files: [initScript, execServer] });
  const folder = await cachedFolder("vm-kit", `${KERNEL_SERIES}-${hash}`, async (draft) => {
    await needCommands(["busybox", "cpio", "modprobe"]);
    await unpackKernel(draft);
    await copyFile(execServer, join(draft, "exec-server"));
    await makeInitrd(draft, await readFile(initScript, "utf8"));
  });
  const kernelRelease = await kernelReleaseOf(folder);
  return {
    folder,
    kernelRelease,
    kernel: join(folder, "boot", `vmlinuz-${kernelRelease}`),
    initrd: join(folder, "initrd.gz"),
  };
}

async function unpackKernel(folder: string): Promise<void> {
  const debianPackage = await newestKernelPackage();
  const download = join(folder, "download");
  await mkdir(download);
  await execa("apt-get", ["download", "-o", "APT::Sandbox::User=root", debianPackage], { cwd: download });
  const [archive] = await readdir(download);
  if (archive === undefined) {
    throw new ToolError(
      "kernel-missing",
      `apt-get download ${debianPackage} left no file; run apt-get update`,
    );
  }
  await execa("dpkg-deb", ["-x", join(download, archive), folder]);
  await execa("rm", ["-r", download]);
  await execa("depmod", ["-b", folder, await kernelReleaseOf(folder)]);
}

async function newestKernelPackage(): Promise<string> {
  const pattern = `^linux-image-${KERNEL_SERIES.replace(".", "\\.")}\\.0-[0-9]+-amd64-unsigned$`;
  await refreshPackageLists();
  const { stdout } = await execa("apt-cache", ["search", "--names-only", pattern]);
  const found = stdout.split("\n").filter((line) => line !== "");
  const abi = (line: string): number => Number(/-([0-9]+)-amd64/.exec(line)?.[1]);
  const newest = found.toSorted((a, b) => abi(a) - abi(b)).at(-1);
  if (newest === undefined) {
    throw new ToolError(
      "kernel-missing",
      `apt knows no package linux-image-${KERNEL_SERIES}.0-*-amd64-unsigned: on Debian 12 run apt-get update`,
    );
  }
  return newest.split(" ")[0] as string;
}

async function kernelReleaseOf(folder: string): Promise<string> {
  const kernels = (await readdir(join(folder, "boot"))).filter((file) => file.startsWith("vmlinuz-"));
  return (kernels[0] as string).slice("vmlinuz-".length);
}

async function makeInitrd(folder: string, initScript: string): Promise<void> {
  const root = join(folder, "initrd");
  const folders = ["bin", "dev", "proc", "root", "modules", "lower", "changes"];
  for (const name of folders) await mkdir(join(root, name), { recursive: true });
  await copyFile("/bin/busybox", join(root, "bin", "busybox"));
  const loads: string[] = [];
  for (const module of await bootModuleFiles(folder)) {
    await copyFile(module, join(root, "modules", basename(module)));
    loads.push(`/bin/busybox insmod /modules/${basename(module)}`);
  }
  await writeFile(join(root, "init"), initScript.replace("@MODULES@", loads.join("\n")), { mode: 0o755 });
  await execa("sh", ["-c", "find . | cpio --quiet -o -H newc | gzip -1 > ../initrd.gz"], { cwd: root });
}

/** Files of the boot modules and of what they depend on, in the order in which they load. */
async function bootModuleFiles(folder: string): Promise<string[]> {
  const release = await kernelReleaseOf(folder);
  const files = new Set<string>();
  for (const module of BOOT_MODULES) {
    const { stdout } = await execa("modprobe", ["-d", folder, "-S", release, "--show-depends", module]);
    for (const line of stdout.split("\n")) {
      if (line.startsWith("insmod ")) files.add(line.slice("insmod ".length).trim());
    }
  }
  return [...files];
}
