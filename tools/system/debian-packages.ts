import { access, constants, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { CACHE_FOLDER } from "./cache.ts";
import { withLock } from "./lock.ts";
import { ToolError } from "./tool-error.ts";

/** The commands that tools and the test bed run, and the Debian packages that hold them. */
const PACKAGE_OF = {
  "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
  busybox: "busybox-static",
  buildah: "buildah",
  containerd: "containerd",
  conntrack: "conntrack",
  cpio: "cpio",
  ctr: "containerd",
  curl: "curl",
  ip: "iproute2",
  iperf3: "iperf3",
  ipset: "ipset",
  iptables: "iptables",
  jq: "jq",
  gcc: "gcc",
  "mkfs.ext4": "e2fsprogs",
  mmdebstrap: "mmdebstrap",
  modprobe: "kmod",
  nft: "nftables",
  nsenter: "util-linux",
  openssl: "openssl",
  patch: "patch",
  ping: "iputils-ping",
  pip3: "python3-pip",
  python3: "python3",
  "qemu-aarch64": "qemu-user",
  "qemu-system-x86_64": "qemu-system-x86",
  "qemu-x86_64": "qemu-user",
  runc: "runc",
  setpriv: "util-linux",
  socat: "socat",
  strace: "strace",
  sysctl: "procps",
  unzip: "unzip",
  "x86_64-linux-gnu-gcc": "gcc-x86-64-linux-gnu",
} as const;

export type Command = keyof typeof PACKAGE_OF;

/** For a package manager that somebody else runs. */
const APT_LOCK_TIMEOUT_S = 300;

const SEARCH_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/**
 * Makes sure that commands and files are there. As root on Debian it installs what is missing and says so.
 *
 * @param commands commands, looked up where Debian installs them
 * @param files other files, each with the package that holds it
 * @throws ToolError `packages-missing`, with the command that installs them; `not-debian-12`
 */
export async function needCommands(
  commands: readonly Command[],
  files: Readonly<Record<string, string>> = {},
): Promise<void> {
  if ((await missingPackages(commands, files)).length === 0) return;
  await withPackagesLock(async () => {
    const packages = await missingPackages(commands, files);
    if (packages.length > 0) await install(packages);
  });
}

/** Has apt learn which packages there are now. Where it cannot, it goes on with what it knows. */
export function refreshPackageLists(): Promise<void> {
  return withPackagesLock(updateLists);
}

/** Builds that run side by side need some of the same packages, and apt-get gives up where another one runs. */
async function withPackagesLock(task: () => Promise<void>): Promise<void> {
  await mkdir(CACHE_FOLDER, { recursive: true });
  await withLock(join(CACHE_FOLDER, ".debian-packages.lock"), task);
}

async function updateLists(): Promise<void> {
  await execa("apt-get", ["update", "-qq"], { reject: false });
}

async function missingPackages(
  commands: readonly Command[],
  files: Readonly<Record<string, string>>,
): Promise<string[]> {
  const packages = new Set<string>();
  for (const command of commands) {
    if (!(await isInstalled(command))) packages.add(PACKAGE_OF[command]);
  }
  for (const [file, debianPackage] of Object.entries(files)) {
    if (!(await isReadable(file))) packages.add(debianPackage);
  }
  return [...packages].sort();
}

async function install(packages: readonly string[]): Promise<void> {
  const command = `apt-get install -y --no-install-recommends ${packages.join(" ")}`;
  const release = await readFile("/etc/debian_version", "utf8").catch(() => "");
  if (!release.startsWith("12")) {
    throw new ToolError(
      "not-debian-12",
      `missing: ${packages.join(", ")}. This machine is not Debian 12, for which the package names hold; ` +
        `install what corresponds to: ${command}`,
    );
  }
  if (process.getuid?.() !== 0) {
    throw new ToolError("packages-missing", `missing: ${packages.join(", ")}. Install with: sudo ${command}`);
  }
  console.error(`installing Debian packages: ${packages.join(" ")}`);
  await updateLists();
  const waitForOthers = ["-o", `DPkg::Lock::Timeout=${APT_LOCK_TIMEOUT_S}`];
  const [file, ...arguments_] = command.split(" ") as [string, ...string[]];
  const { exitCode, all } = await execa(file, [...waitForOthers, ...arguments_], {
    env: { DEBIAN_FRONTEND: "noninteractive" },
    reject: false,
    all: true,
  });
  if (exitCode !== 0) throw new ToolError("packages-missing", `${command} failed:\n${all}`);
}

async function isInstalled(command: string): Promise<boolean> {
  for (const folder of SEARCH_PATH) {
    if (await isReadable(join(folder, command))) return true;
  }
  return false;
}

function isReadable(file: string): Promise<boolean> {
  return access(file, constants.R_OK).then(
    () => true,
    () => false,
  );
}
