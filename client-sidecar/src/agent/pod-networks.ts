/** The network namespaces of pods on this node: all that the agent does to the kernel goes through here. */

import { statfs } from "node:fs/promises";
import {
  Client,
  type ClientConfig,
  type Kernel,
  kernelInNetns,
  prepareGatewayNetns,
  type SilentTunnel,
  type TunnelProbeOptions,
} from "@egress-nat/founat";
import type { Logger } from "@egress-nat/program";

/** linux/magic.h NSFS_MAGIC: the file is a namespace, not the empty file that it was mounted on. */
const NSFS_MAGIC = 0x6e736673;

/** A container's own /proc/sys is read-only; this mount of the host's shows, after setns(2), the pod's values. */
const SYSCTL_ROOT = "/host/proc/sys";

export interface PodNetworks {
  /** Brings a client's namespace to what the configuration says, by a diff. */
  apply(netns: string, config: ClientConfig): Promise<{ readonly changed: boolean }>;
  /** @returns what differs, in words */
  check(netns: string, config: ClientConfig): Promise<readonly string[]>;
  /** Sends a packet through each tunnel and back. @returns the tunnels through which no answer came */
  probe(netns: string, config: ClientConfig, options: TunnelProbeOptions): Promise<readonly SilentTunnel[]>;
  remove(netns: string): Promise<void>;
  /** Lets a gateway's namespace forward packets. */
  prepareGateway(netns: string): Promise<void>;
  /** False only where it is certain that the namespace is gone. */
  exists(netns: string): Promise<boolean>;
}

/** The real ones. One namespace is changed by one caller at a time. */
export class KernelPodNetworks implements PodNetworks {
  readonly #logger: Logger;
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  apply(netns: string, config: ClientConfig): Promise<{ readonly changed: boolean }> {
    return this.#serially(netns, () => this.#client(netns).apply(config));
  }

  check(netns: string, config: ClientConfig): Promise<readonly string[]> {
    return this.#serially(netns, () => this.#client(netns).check(config));
  }

  /** It changes nothing, so it holds up nobody. */
  probe(netns: string, config: ClientConfig, options: TunnelProbeOptions): Promise<readonly SilentTunnel[]> {
    return this.#client(netns).probe(config, options);
  }

  remove(netns: string): Promise<void> {
    return this.#serially(netns, () => this.#client(netns).remove());
  }

  prepareGateway(netns: string): Promise<void> {
    return this.#serially(netns, () => prepareGatewayNetns(this.#kernel(netns)));
  }

  async exists(netns: string): Promise<boolean> {
    try {
      return (await statfs(hostPath(netns))).type === NSFS_MAGIC;
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === "ENOENT") return false;
      // A client is not withdrawn on a guess.
      this.#logger.warn({ err, netns }, "cannot tell whether a network namespace is there");
      return true;
    }
  }

  #client(netns: string): Client {
    return new Client({ kernel: this.#kernel(netns), logger: this.#logger });
  }

  #kernel(netns: string): Kernel {
    return kernelInNetns(hostPath(netns), { sysctlRoot: SYSCTL_ROOT });
  }

  async #serially<T>(netns: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(netns) ?? Promise.resolve();
    const current = before.then(work, work);
    this.#last.set(netns, current);
    try {
      return await current;
    } finally {
      if (this.#last.get(netns) === current) this.#last.delete(netns);
    }
  }
}

/** Runtimes name namespaces by /var/run, a symbolic link on every host that an image need not have. */
function hostPath(netns: string): string {
  return netns.replace(/^\/var\/run\//, "/run/");
}
