import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { contentHash } from "../system/cache.ts";
import { needCommands } from "../system/debian-packages.ts";
import { ToolError } from "../system/tool-error.ts";
import { type CachedImage, cachedImage, storedName } from "./image.ts";
import { writeImage } from "./oci-layout.ts";

const DEBIAN_RELEASE = "bookworm";

// What the product's images need, and what test clients are made of: a node then holds one copy of it all.
const PACKAGES = [
  "usr-is-merged", // else usrmerge, and with it all of Perl
  "libstdc++6", // Node
  "python3",
  "iproute2",
  "nftables",
  "iptables",
  "ipset",
  "conntrack",
  "kmod",
  "socat",
  "curl",
  "iperf3",
  "tcpdump",
  "procps",
  "iputils-ping",
];

// A node VM takes the image in under software emulation: every megabyte costs time there.
const LEFT_OUT = [
  "/usr/share/doc/*",
  "/usr/share/man/*",
  "/usr/share/locale/*",
  "/usr/share/info/*",
  "/usr/lib/*/gconv/*",
];

const RECIPE = [
  "--variant=essential",
  "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
  `--include=${PACKAGES.join(",")}`,
  '--aptopt=APT::Install-Recommends "false"',
  ...LEFT_OUT.map((pattern) => `--dpkgopt=path-exclude=${pattern}`),
  '--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/var/log/*',
];

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Debian with the tools that the tests use; the image of test pods, and what the product's images are built on. */
export const TOOLBOX_IMAGE = "egress-nat-toolbox:test";

/**
 * Debian with the tools that the tests use and the Node that the project pins. Test clients run it as it is; the
 * product's images are built on it in tests, in place of the official Node image. Made once per content; only then
 * is the Debian mirror needed.
 *
 * @param root the checkout
 * @throws ToolError `packages-missing`, `mmdebstrap-failed`
 */
export async function baseImage(root: string): Promise<CachedImage> {
  const nodePackage = join(root, `node_modules/node-linux-${process.arch}`);
  const packageJson = await readFile(join(nodePackage, "package.json"), "utf8");
  const key = await contentHash({ texts: [DEBIAN_RELEASE, PATH, ...RECIPE, packageJson] });
  return cachedImage(TOOLBOX_IMAGE, key, async (layout) => {
    await mkdir(layout);
    const tar = join(layout, "root.tar");
    await mmdebstrap([
      ...RECIPE,
      `--customize-hook=upload ${join(nodePackage, "bin/node")} /usr/local/bin/node`,
      '--customize-hook=chmod 755 "$1"/usr/local/bin/node',
      DEBIAN_RELEASE,
      tar,
    ]);
    await writeImage(layout, storedName(TOOLBOX_IMAGE), tar, { Env: [`PATH=${PATH}`], Cmd: ["/bin/bash"] });
  });
}

async function mmdebstrap(args: readonly string[]): Promise<void> {
  await needCommands(["mmdebstrap"]);
  const result = await execa("mmdebstrap", args, {
    env: { SOURCE_DATE_EPOCH: "0" },
    reject: false,
    all: true,
  });
  if (result.failed) {
    throw new ToolError(
      "mmdebstrap-failed",
      `no Debian root could be made (is the mirror reachable?):\n${result.all}`,
    );
  }
}
