/** Kernel modules of the data path, loaded from the node's own /lib/modules. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { release } from "node:os";
import { promisify } from "node:util";
import { InstallError } from "./error.ts";

/** Nothing loads these by itself in a pod's network namespace: tunnels, and what the rule sets use. */
const MODULES: readonly string[] = [
  ...["fou", "ipip"],
  ...["nf_tables", "nft_chain_nat", "nft_ct", "nft_fib_inet", "nft_masq", "nft_reject_inet", "nft_socket"],
  "nf_conntrack_netlink",
];

const IPV6_MODULES: readonly string[] = ["fou6", "ip6_tunnel"];

/**
 * The gateway's fast path: a kernel without it asks the rules for each packet. Counters: built in, in later kernels.
 */
const OPTIONAL_MODULES: readonly string[] = ["nf_flow_table_inet", "nft_flow_offload", "nft_counter"];

const REMEDY =
  "install the package of your distribution that holds them: Debian linux-image-amd64 or -arm64 instead of the -cloud- " +
  "variant, Ubuntu linux-modules-extra-$(uname -r), Fedora and RHEL kernel-modules-extra; then restart this pod";

export interface ModuleEffects {
  /** Loads one module. @throws when it cannot */
  readonly load: (module: string) => Promise<void>;
  /** Whether it is in the kernel, as a module or built in. */
  readonly isLoaded: (module: string) => boolean;
  /** Whether the kernel knows IPv6: not one that was booted with `ipv6.disable=1`. */
  readonly hasIpv6: () => boolean;
}

const ofThisNode: ModuleEffects = {
  load: async (module) => void (await promisify(execFile)("modprobe", ["--", module])),
  isLoaded: (module) => existsSync(`/sys/module/${module}`),
  hasIpv6: () => existsSync("/proc/net/if_inet6"),
};

/**
 * Loads the modules that are not there yet.
 *
 * @throws InstallError `modules-missing` that names every module that cannot be loaded, and the remedy
 */
export async function installModules({ load, isLoaded, hasIpv6 }: ModuleEffects = ofThisNode): Promise<void> {
  const failures = new Map<string, unknown>();
  const needed = [...MODULES, ...(hasIpv6() ? IPV6_MODULES : [])];
  for (const module of [...needed, ...OPTIONAL_MODULES].filter((name) => !isLoaded(name))) {
    await load(module).catch((error: unknown) => {
      if (needed.includes(module)) failures.set(module, error);
    });
  }
  if (failures.size === 0) return;
  const names = [...failures.keys()].join(", ");
  const [cause] = failures.values();
  throw new InstallError("modules-missing", `kernel ${release()} of this node has no ${names}: ${REMEDY}`, {
    cause,
  });
}
