/** The network namespaces of pods, by their files. */

import { statfs } from "node:fs/promises";
import {
  Client,
  type ClientConfig,
  ForkServer,
  FounatError,
  type Kernel,
  type KnownClient,
  kernelInNetns,
  type NetnsWatch,
  openNetnsWatch,
  prepareGatewayNetns,
  type Repair,
  type SilentTunnel,
  type TunnelProbeOptions,
} from "@egress-nat/founat";
import type { Logger } from "@egress-nat/program";
import type { PodNetworks, PodNetworkWatchOptions } from "../client/networks.ts";
import { Overtaken, Turns } from "./turns.ts";

/** linux/magic.h NSFS_MAGIC: the file is a namespace, not the empty file that it was mounted on. */
const NSFS_MAGIC = 0x6e736673;

/** A container's own /proc/sys is read-only; this mount of the host's shows, after setns(2), the pod's values. */
const SYSCTL_ROOT = "/host/proc/sys";

/** One namespace is changed by one caller at a time. */
export class KernelPodNetworks implements PodNetworks {
  readonly #logger: Logger;
  readonly #turns = new Turns();
  readonly #forkServer = new ForkServer();
  /** By namespace. */
  readonly #known = new Map<string, KnownClient>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  setUp(netns: string, config: ClientConfig): Promise<unknown> {
    const setUp = async () => ({ known: await this.#client(netns).setUp(config) });
    return this.#turns.take(netns, () => this.#change(netns, setUp));
  }

  /** Most of its time it looks. */
  apply(netns: string, config: ClientConfig): Promise<Repair | undefined> {
    return this.#turns.giveWay(netns, (signal) =>
      this.#change(netns, () => this.#client(netns).repair(config, signal)),
    );
  }

  async steer(netns: string, config: ClientConfig): Promise<boolean | undefined> {
    const steer = async (before: KnownClient | undefined) => {
      const known = before && (await this.#client(netns).steer(config, before));
      return { known: known ?? before, isChanged: known && known !== before };
    };
    const turn = () => this.#change(netns, steer);
    // Where nothing is known, only a look leads flows elsewhere.
    const { isChanged } = await (this.#known.has(netns)
      ? this.#turns.hurry(netns, turn)
      : this.#turns.take(netns, turn));
    return isChanged;
  }

  keep(netnses: ReadonlySet<string>): void {
    for (const netns of this.#known.keys()) if (!netnses.has(netns)) this.#known.delete(netns);
    this.#turns.keep(netnses);
  }

  /** What a change that has failed left nobody knows. One that was overtaken, or cannot be planned, has changed nothing. */
  async #change<T extends { readonly known: KnownClient | undefined }>(
    netns: string,
    change: (before: KnownClient | undefined) => Promise<T>,
  ): Promise<T> {
    const before = this.#known.get(netns);
    try {
      const result = await change(before);
      if (result.known !== undefined) this.#known.set(netns, result.known);
      return result;
    } catch (err) {
      const isUnchanged =
        err instanceof Overtaken || (err instanceof FounatError && err.code === "invalid-config");
      if (!isUnchanged) this.#known.delete(netns);
      throw err;
    }
  }

  check(netns: string, config: ClientConfig): Promise<readonly string[]> {
    return this.#turns.take(netns, () => this.#client(netns).check(config));
  }

  /** It changes nothing, so it holds up nobody. */
  probe(netns: string, config: ClientConfig, options: TunnelProbeOptions): Promise<readonly SilentTunnel[]> {
    return this.#client(netns).probe(config, options);
  }

  hasTunnel(netns: string, address: string): boolean {
    return this.#known.get(netns)?.markTo(address) !== undefined;
  }

  /** As {@link probe}. */
  async probeGateway(netns: string, address: string): Promise<boolean | undefined> {
    const known = this.#known.get(netns);
    return known && this.#client(netns).probeGateway(known, address);
  }

  remove(netns: string, isFree: () => boolean, uplink?: string): Promise<boolean> {
    return this.#turns.take(netns, async () => {
      if (!isFree()) return true;
      this.#known.delete(netns);
      return this.#client(netns).remove(uplink);
    });
  }

  openWatch({ onChange, onRefused, onLost }: PodNetworkWatchOptions): NetnsWatch {
    const names = new Map<string, string>();
    const nameOf = (path: string) => names.get(path) ?? path;
    const watch = openNetnsWatch({
      sysctlRoot: SYSCTL_ROOT,
      onChange: (path) => onChange(nameOf(path)),
      onRefused: (path, refusals) => onRefused(nameOf(path), refusals),
      onLost: (path, reason) => onLost(nameOf(path), reason),
    });
    return {
      ...watch,
      watch: (netns) => {
        names.set(hostPath(netns), netns);
        watch.watch(hostPath(netns));
      },
      forget: (netns) => {
        names.delete(hostPath(netns));
        watch.forget(hostPath(netns));
      },
    };
  }

  prepareGateway(netns: string): Promise<void> {
    return this.#turns.take(netns, () => prepareGatewayNetns(this.#kernel(netns)));
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
    return new Client({ kernel: this.#kernel(netns), logger: this.#logger.child({ netns }) });
  }

  #kernel(netns: string): Kernel {
    return kernelInNetns(hostPath(netns), { sysctlRoot: SYSCTL_ROOT, forkServer: this.#forkServer });
  }
}

/** Runtimes name namespaces by /var/run, a symbolic link on every host that an image need not have. */
function hostPath(netns: string): string {
  return netns.replace(/^\/var\/run\//, "/run/");
}
