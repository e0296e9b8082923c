import type { Addresses } from "@egress-nat/addresses";

/** One gateway of an Egress, or the Service in front of some. */
export interface ClientGateway extends Addresses {
  /**
   * Whether flows begin with it (the default), or only those stay that have begun. Of one that is not named none stay.
   * That of a spare one has a tunnel already, for when flows are to begin with it.
   */
  readonly flows?: "new" | "existing" | "spare";
}

/** One Egress of a client. */
export interface ClientEgress {
  /** For messages and comments, for instance namespace/name. */
  readonly name: string;
  /** CIDRs, of either family. */
  readonly destinations: readonly string[];
  /** CIDRs that never go through this Egress's gateways. */
  readonly excluded: readonly string[];
  /**
   * Where outer packets are sent. Each flow stays with the gateway that it has begun with; of several that take new ones
   * each flow gets any. A family without any is guarded, and closed.
   */
  readonly gateways: readonly ClientGateway[];
  /** The addresses that FoU may come from: Service addresses and the gateways' own. */
  readonly peers: readonly string[];
  /** UDP port of the tunnel, at both ends; the same for every Egress of a client. */
  readonly port: number;
  /** Whether each inner flow gets an outer source port of its own, instead of {@link port}. */
  readonly sourcePortAuto: boolean;
  /** Whether replies to inbound flows leave as they came, instead of through the gateway. */
  readonly originatingOnly: boolean;
}

/** What a client's network namespace should be. */
export interface ClientConfig {
  /** Name of the interface that connects the client, `eth0` in most pods. */
  readonly uplink: string;
  /** In the order of the client's annotation: of two that cover a destination alike, the first carries it. */
  readonly egresses: readonly ClientEgress[];
  /** CIDRs of pods, Services and nodes: never tunnelled. */
  readonly clusterRanges: readonly string[];
  /** The bits of packet marks that may be written; default 0xff000000. */
  readonly markMask?: number;
}
