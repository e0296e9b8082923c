import { isDeepStrictEqual } from "node:util";
import type {
  ClientConfig,
  NetnsWatch,
  Refusals,
  SilentTunnel,
  TunnelProbeOptions,
} from "@egress-nat/founat";
import type { Look, PodNetworks, PodNetworkWatchOptions } from "../client/networks.ts";
import { Turns } from "../node-agent/turns.ts";

/** Network namespaces that only remember what they were told to be; one is changed by one caller at a time. */
export class FakeNetworks implements PodNetworks {
  readonly #turns = new Turns();
  readonly #step: (netns: string) => Promise<unknown>;
  readonly applied = new Map<string, ClientConfig>();
  readonly gateways = new Set<string>();
  readonly gone = new Set<string>();
  /** Whose uplink is still there after DEL. */
  readonly attached = new Set<string>();
  /** By namespace, where its own routes lead. */
  readonly localRoutes = new Map<string, readonly string[]>();
  readonly #followed = new Map<string, readonly string[]>();
  /** What the next {@link apply} fails with. */
  failure: Error | undefined;
  /** Whether the next {@link apply} is overtaken. */
  isOvertaken = false;
  /** All others were forgotten. */
  kept: ReadonlySet<string> = new Set();
  /** Tunnels through which no probe comes back. */
  silent: readonly SilentTunnel[] = [];
  readonly probes: TunnelProbeOptions[] = [];
  /** Gateways through whose tunnels nothing comes back. */
  readonly dead = new Set<string>();
  /** By namespace, what its guard has counted. */
  readonly #refused = new Map<string, Refusals>();

  /** The namespaces that are watched. */
  readonly watched = new Set<string>();
  /** Those that the watch was told to forget. */
  readonly forgotten = new Set<string>();
  #watch: { readonly options: PodNetworkWatchOptions; readonly end: (reason: string) => void } | undefined;

  /** @param step what the kernel takes for a change */
  constructor(step: (netns: string) => Promise<unknown> = async () => undefined) {
    this.#step = step;
  }

  async setUp(netns: string, config: ClientConfig): Promise<void> {
    await this.apply(netns, config);
  }

  apply(netns: string, config: ClientConfig): Promise<Look | undefined> {
    return this.#turns.take(netns, async () => {
      if (this.isOvertaken) {
        this.isOvertaken = false;
        return undefined;
      }
      await this.#step(netns);
      if (this.failure !== undefined) throw this.failure;
      const before = this.applied.get(netns);
      this.applied.set(netns, config);
      const localRoutes = this.localRoutes.get(netns) ?? [];
      const differences = [
        ...(isDeepStrictEqual(before, config)
          ? []
          : [{ object: "route", text: "route 192.0.2.0/24 is missing" }]),
        ...(isDeepStrictEqual(this.#followed.get(netns) ?? [], localRoutes)
          ? []
          : [{ object: "set", text: "nft set guarded4 has other elements" }]),
      ];
      this.#followed.set(netns, localRoutes);
      return { differences, localRoutes };
    });
  }

  /** All of it is done by {@link apply}. */
  async steer(): Promise<undefined> {}

  keep(netnses: ReadonlySet<string>): void {
    this.kept = netnses;
  }

  /** Somebody else takes away all that was applied. */
  wipe(netns: string): void {
    this.applied.delete(netns);
    if (this.watched.has(netns)) this.#watch?.options.onChange(netns);
  }

  /** The guard has refused so much in all. */
  refuse(netns: string, refusals: Refusals): void {
    this.#refused.set(netns, refusals);
    if (this.watched.has(netns)) this.#watch?.options.onRefused(netns, refusals);
  }

  openWatch(options: PodNetworkWatchOptions): NetnsWatch {
    const { promise: ended, resolve: end } = Promise.withResolvers<string>();
    this.watched.clear();
    this.#watch = { options, end };
    return {
      watch: (netns) => {
        if (this.gone.has(netns)) return options.onLost(netns, "No such file or directory");
        this.watched.add(netns);
        options.onChange(netns);
        const refusals = this.#refused.get(netns);
        if (refusals !== undefined) options.onRefused(netns, refusals);
      },
      forget: (netns) => {
        this.watched.delete(netns);
        this.forgotten.add(netns);
      },
      close: () => end("closed"),
      ended,
    };
  }

  /** The program that watches ends. */
  endWatch(reason: string): void {
    this.#watch?.end(reason);
  }

  async check(netns: string, config: ClientConfig): Promise<readonly string[]> {
    return isDeepStrictEqual(this.applied.get(netns), config) ? [] : ["route 192.0.2.0/24 is missing"];
  }

  async probe(
    _netns: string,
    _config: ClientConfig,
    options: TunnelProbeOptions,
  ): Promise<readonly SilentTunnel[]> {
    this.probes.push(options);
    return this.silent;
  }

  hasTunnel(): boolean {
    return true;
  }

  async probeGateway(_netns: string, address: string): Promise<boolean | undefined> {
    return !this.dead.has(address);
  }

  remove(netns: string, isFree: () => boolean, uplink?: string): Promise<boolean> {
    return this.#turns.take(netns, async () => {
      if (!isFree()) return true;
      if (uplink !== undefined && this.attached.has(netns)) return false;
      await this.#step(netns);
      this.applied.delete(netns);
      return true;
    });
  }

  async prepareGateway(netns: string): Promise<void> {
    this.gateways.add(netns);
  }

  async exists(netns: string): Promise<boolean> {
    return !this.gone.has(netns);
  }
}
