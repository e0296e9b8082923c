/**
 * What spells the packet filter of a gateway: a table of nftables, or rules of iptables with sets of ipset. Programs of
 * Debian's packages `nftables`, or `iptables`, `ipset` and `iproute2`; both ask conntrack.
 */
export type GatewayBackend = "nftables" | "iptables";

/** What a gateway does for all its clients. */
export interface GatewayConfig {
  /**
   * Absent: nftables. A gateway that is told another one has the new packet filter before it takes the old one away:
   * flows live on. Where the kernel or the host lacks what it needs, calls fail by `backend-unavailable`.
   */
  readonly backend?: GatewayBackend;
  /** The gateway's own addresses, where somebody has said which they are; absent: the first of each family. */
  readonly addresses?: readonly string[];
  /** UDP port of the tunnel, at both ends. */
  readonly port: number;
  /** Whether each inner flow gets an outer source port of its own, instead of {@link port}. */
  readonly sourcePortAuto: boolean;
  /** CIDRs, of either family, that clients may reach through this gateway. */
  readonly destinations: readonly string[];
  /** CIDRs within them that clients may not reach: exclusions, and all in-cluster ranges. */
  readonly excluded: readonly string[];
}

/** One client of a gateway. */
export interface GatewayClient {
  /** Opaque and unique, for instance a pod's UID. */
  readonly id: string;
  /** The addresses that it sends from, outside and inside of the tunnel. */
  readonly addresses: readonly string[];
}
