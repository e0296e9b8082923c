/** The network namespaces of pods on this node: all that is done to the kernel goes through here. */

import type {
  ClientConfig,
  NetnsWatch,
  NetnsWatchOptions,
  Repair,
  SilentTunnel,
  TunnelProbeOptions,
} from "@egress-nat/founat";

export type PodNetworkWatchOptions = Omit<NetnsWatchOptions, "sysctlRoot">;

/** What a look at a namespace led to. */
export type Look = Pick<Repair, "differences" | "localRoutes">;

export interface PodNetworks {
  /** As {@link apply}, sooner where the namespace was made just now. */
  setUp(netns: string, config: ClientConfig): Promise<unknown>;
  /**
   * Brings a client's namespace to what the configuration says, by a diff.
   *
   * @returns undefined where {@link steer} has overtaken it, and nothing was done
   */
  apply(netns: string, config: ClientConfig): Promise<Look | undefined>;
  /**
   * Leads flows where the configuration says, sooner than {@link apply}, which has to follow.
   *
   * @returns whether anything had to be changed; undefined where that takes what only {@link apply} makes
   */
  steer(netns: string, config: ClientConfig): Promise<boolean | undefined>;
  /** Forgets all namespaces but these. */
  keep(netnses: ReadonlySet<string>): void;
  /** @returns what differs, in words */
  check(netns: string, config: ClientConfig): Promise<readonly string[]>;
  /** Sends a packet through each tunnel and back. @returns the tunnels through which no answer came */
  probe(netns: string, config: ClientConfig, options: TunnelProbeOptions): Promise<readonly SilentTunnel[]>;
  /** Whether a client has a tunnel to a gateway, as far as this process has made or seen it. */
  hasTunnel(netns: string, address: string): boolean;
  /**
   * Sends packets to one gateway through a client's tunnel and back.
   *
   * @returns whether any came back; undefined where the client has no tunnel to it
   */
  probeGateway(netns: string, address: string): Promise<boolean | undefined>;
  /**
   * Takes all that is ours out of a namespace that is nobody's.
   *
   * @param isFree asked when it is this call's turn: a client that came meanwhile keeps what it has
   * @param uplink an interface without which nothing leaves the namespace: while it is there, all stays
   * @returns whether nothing is left of a client that is gone
   */
  remove(netns: string, isFree: () => boolean, uplink?: string): Promise<boolean>;
  /** Notices changes in namespaces, and what their guards refuse. */
  openWatch(options: PodNetworkWatchOptions): NetnsWatch;
  /** Lets a gateway's namespace forward packets. */
  prepareGateway(netns: string): Promise<void>;
  /** False only where it is certain that the namespace is gone. */
  exists(netns: string): Promise<boolean>;
}
