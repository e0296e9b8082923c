import type { Addresses, Family, Range } from "@egress-nat/addresses";
import { LINK_GROUP, linkName, type TunnelLink } from "../iproute/links.ts";
import { carriedRanges, decide } from "../routing/coverage.ts";
import { PROBE_PREFIXES } from "../routing/probe-addresses.ts";
import type { GatewayConfig } from "./config.ts";

/** Why a gateway drops packets. */
export const DROP_REASONS = [
  /** From the network, to the tunnel, of somebody who is no client. */
  "no_client",
  /** Through the tunnel, with a source that is not its client's. */
  "foreign_source",
  /** Through the tunnel, to the gateway itself. */
  "to_gateway",
  /** Of no flow that conntrack could know. */
  "invalid",
  "routing_header",
  /** To a place that the Egress does not name; from anywhere to a client that has not asked. */
  "not_allowed",
  /** Would have left as it came, with a client's address. */
  "untranslated",
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Packet marks. Those of clients are small numbers. */
export const MARKS = {
  /**
   * On what the packet filter has looked at on its way between a client and a destination: without it no route leads out
   * of the tunnel or into it.
   */
  passed: 0x65670001,
  /** On what this host sends into a tunnel's port: it leaves by the uplink as it is. */
  outer: 0x65670002,
} as const;

/**
 * What the packet filter of a gateway is told, whoever spells it. In the order of a packet's way:
 *
 * - Outer packets, to the tunnel's port, that a client's address has sent get the client's mark and are not tracked;
 *   those of others, and tunnels without UDP, are dropped, but for answers that NAT gave this port. Outer packets of this
 *   host get theirs.
 * - What comes out of a tunnel has a source that belongs to its mark, and is marked as passed; so is the answer to a flow
 *   that was translated.
 * - To this host clients may send echo requests for {@link probes}, which nobody else may.
 * - Between tunnels and uplink clients may reach {@link allowed}, and are answered from there; neither untracked nor with
 *   a routing header. The segment size of TCP is clamped to the MTU.
 * - Clients leave with one of {@link addresses}, by a random port, or not at all.
 */
export interface GatewayPolicy {
  readonly uplink: string;
  /** The gateway's own. */
  readonly addresses: Addresses;
  /** UDP port of the tunnel. */
  readonly port: number;
  /** The tunnel links. */
  readonly tunnels: readonly { readonly family: Family; readonly name: string }[];
  /** That of the tunnel links (`ip link … group`). */
  readonly group: number;
  readonly marks: typeof MARKS;
  readonly allowed: Readonly<Record<Family, readonly Range[]>>;
  readonly probes: Readonly<Record<Family, string>>;
}

export function gatewayPolicy(
  config: GatewayConfig,
  uplink: { readonly name: string; readonly addresses: Addresses },
  links: readonly TunnelLink[],
): GatewayPolicy {
  const { name, addresses } = uplink;
  return {
    uplink: name,
    addresses,
    port: config.port,
    tunnels: links.map((link) => ({ family: link.family, name: linkName(link) })),
    // They have no remote.
    group: LINK_GROUP.open,
    marks: MARKS,
    allowed: { ipv4: allowed("ipv4", config, addresses), ipv6: allowed("ipv6", config, addresses) },
    probes: PROBE_PREFIXES,
  };
}

// The same decision as a client's: wide destinations do not include private ranges.
function allowed(family: Family, { destinations, excluded }: GatewayConfig, self: Addresses): Range[] {
  const own = Object.values(self).filter((address) => address !== undefined);
  return carriedRanges(
    decide(family, [{ destinations, excluded: [...excluded, ...own] }], { clusterRanges: [] }),
  );
}
