import type { Family } from "@egress-nat/addresses";
import { MOST_GATEWAYS, remembering, shortDigest } from "../digest.ts";
import { canonicalAddress } from "../routing/cidr.ts";
import type { FouPortState, LinkState, NetworkState } from "./state.ts";

/** IP protocol numbers of what FoU carries here: IPv4 in IPv4, IPv6 in IPv6. */
const TUNNEL_PROTOCOLS: Readonly<Record<Family, number>> = { ipv4: 4, ipv6: 41 };

/** What the tunnel's headers take of the uplink's MTU, in bytes: outer IP and UDP. */
const TUNNEL_OVERHEAD_BYTES: Readonly<Record<Family, number>> = { ipv4: 28, ipv6: 48 };

/** The least that a link may have: RFC 791, RFC 8200 section 5. */
const MIN_MTU: Readonly<Record<Family, number>> = { ipv4: 68, ipv6: 1280 };

/** Of outer packets, whatever the inner one has left. */
const TUNNEL_TTL = 225;

/** What tells the links of one namespace apart. */
export interface TunnelLinkKey {
  readonly family: Family;
  readonly sourcePortAuto: boolean;
  /** The only peer. A link without one takes in what no other link does, and sends to each packet's next hop. */
  readonly remote?: string;
  /** Whether it is a client's link without a peer, which nothing leaves by. */
  readonly receiving?: boolean;
}

/** One FoU link. */
export interface TunnelLink extends TunnelLinkKey {
  readonly port: number;
  /** The address that outer packets leave from. */
  readonly local: string;
  readonly uplink: string;
  readonly mtu: number;
}

/** UDP port on which the kernel takes tunnelled packets in. */
interface FouPort {
  readonly family: Family;
  readonly port: number;
}

/** The tunnels that are wanted. */
export interface Tunnels {
  readonly fouPorts: readonly FouPort[];
  readonly links: readonly TunnelLink[];
}

/**
 * What stands for the address of IPv4 links (RFC 7600: the IPv4 dummy address). On an interface without any address
 * the kernel takes rp_filter 2 for 1, and drops what comes from elsewhere than the interface's routes lead to: ICMP
 * errors from routers (path MTU!), and answers that another link of the same family asked for. The scope keeps it from
 * ever being a source.
 */
const DUMMY_ADDRESS = "192.0.0.8";

/** At most 15 characters (IFNAMSIZ). A client's links named `fou` are those to its gateways, as coil's are. */
export function linkName({ family, sourcePortAuto, remote, receiving }: TunnelLinkKey): string {
  const name = `${receiving ? "egress" : "fou"}${family === "ipv4" ? "4" : "6"}${sourcePortAuto ? "a" : ""}`;
  if (remote === undefined) return name;
  return `${name}_${digestOf(remote)}`;
}

const digestOf = remembering((address: string) => shortDigest(canonicalAddress(address)), {
  keyOf: String,
  most: MOST_GATEWAYS,
});

/**
 * The group of a link: what rules of nft know it by, at a fraction of the cost of a name, and before it is there. Links
 * to one peer are told from those without a remote by the last bit.
 */
export const LINK_GROUP = { peer: 118, open: 119 } as const;

function linkGroup({ remote }: TunnelLinkKey): number {
  return remote === undefined ? LINK_GROUP.open : LINK_GROUP.peer;
}

/** A client's link without a remote. */
export function receivingLink(family: Family): TunnelLinkKey {
  return { family, sourcePortAuto: false, receiving: true };
}

/** Whether a link has a name that {@link linkName} gives. */
export function isLinkName(name: string): boolean {
  return /^(fou[46]a?(_[0-9a-f]{8})?|egress[46])$/.test(name);
}

/** Whether it is one of a link to one peer. */
export function isPeerLinkName(family: Family, name: string): boolean {
  return isLinkName(name) && name.startsWith(family === "ipv4" ? "fou4" : "fou6") && name.includes("_");
}

/**
 * The tunnel links that plans need. The uplink's MTU minus the headers is set and not left to the kernel, whose
 * default knows nothing of the uplink. Where that is less than the family's least MTU, outer packets are fragmented.
 */
export function tunnelLink(
  key: TunnelLinkKey,
  port: number,
  uplink: { readonly name: string; readonly mtu: number },
  local: string,
): TunnelLink {
  return {
    ...key,
    port,
    local,
    uplink: uplink.name,
    mtu: Math.max(uplink.mtu - TUNNEL_OVERHEAD_BYTES[key.family], MIN_MTU[key.family]),
  };
}

/**
 * The arguments of `ip link add`. A link with a remote keeps the route to it, which the kernel does only where tos and
 * tclass are not inherited; one without shows the inner packet's DSCP on the outer one. ECN survives with either. Two
 * links of one family may not have the same addresses, so the one with the automatic source port is bound to the
 * uplink: that makes it another one to the kernel.
 *
 * The outer UDP checksum is zero, over IPv6 as over IPv4 (RFC 6935, RFC 6936). The kernel computes one from the inner
 * checksum that is still to be filled in (local checksum offload), and its NAT then takes the packet for one whose
 * outer checksum is still to be filled in: what a Service redirects arrives with a wrong checksum and is dropped.
 */
function addLinkCommand(link: TunnelLink): string {
  const { family, sourcePortAuto, port, local, uplink, remote } = link;
  const kind = family === "ipv4" ? "type ipip" : "type ip6tnl mode ip6ip6";
  const addresses = `local ${local} remote ${remote ?? (family === "ipv4" ? "any" : "::")}`;
  const bound = sourcePortAuto ? ` dev ${uplink}` : "";
  const inherit = remote === undefined ? (family === "ipv4" ? " tos inherit" : " tclass inherit") : "";
  const limit = family === "ipv4" ? "" : " encaplimit none";
  const checksum = family === "ipv4" ? "noencap-csum" : "noencap-udp6-csum";
  const encap = `encap fou encap-sport ${sourcePortAuto ? "auto" : port} encap-dport ${port} ${checksum}`;
  return `link add ${linkName(link)} group ${linkGroup(link)} ${kind} ${addresses}${bound} ttl ${TUNNEL_TTL}${inherit}${limit} ${encap}`;
}

export interface LinkChanges {
  /** Lines for `ip -batch` that make ports and links; a link that is down carries nothing. */
  readonly make: readonly string[];
  /** Lines for `ip -batch` that bring the links up. */
  readonly bringUp: readonly string[];
  /** Links that are deleted or recreated: the kernel drops their routes. */
  readonly replaced: ReadonlySet<string>;
}

/** What makes the kernel's FoU ports and links equal to the wanted ones. */
export function linkChanges(wanted: Tunnels, state: NetworkState): LinkChanges {
  const make: string[] = [];
  const bringUp: string[] = [];
  const replaced = new Set<string>();
  const leftovers = leftoverLinks(wanted, state);
  for (const port of wanted.fouPorts) {
    const rivals = state.fouPorts.filter((candidate) => sameNumber(port, candidate));
    if (rivals.some(isOurs)) continue;
    // Made by somebody else, for another protocol or some packets only: two of one number there cannot be.
    make.push(...rivals.map(deletePortCommand), addPortCommand(port));
  }
  for (const link of wanted.links) {
    const name = linkName(link);
    const actual = state.links.find((candidate) => candidate.name === name);
    const fits = actual !== undefined && sameTunnel(link, actual);
    if (!fits) {
      // Two links of the same addresses there cannot be.
      const rivals = leftovers.filter((leftover) => sameAddresses(link, leftover));
      const former = [...(actual === undefined ? [] : [actual]), ...rivals];
      make.push(...former.map((each) => `link del ${each.name}`), addLinkCommand(link));
      for (const each of [...former, { name }]) replaced.add(each.name);
    }
    if (link.family === "ipv4" && !(fits && actual.hasIpv4Address)) {
      make.push(`address replace ${DUMMY_ADDRESS}/32 dev ${name} scope host`);
    }
    // Else, once up, the link has an address of its own and solicits routers through the tunnel.
    if (link.family === "ipv6" && !(fits && actual.up)) make.push(`link set ${name} addrgenmode none`);
    if (!fits || !actual.up || actual.mtu !== link.mtu) bringUp.push(`link set ${name} mtu ${link.mtu} up`);
  }
  return { make, bringUp, replaced };
}

/**
 * The lines that take away what is not wanted (any more). Ports first: a link that is still there says which port was
 * founat's. Links whose addresses a wanted one needs are not among them: {@link linkChanges} takes them away before.
 */
export function linkRemovals(wanted: Tunnels, state: NetworkState): string[] {
  const ours = tunnelLinks(state);
  const ports = new Set(ours.map(({ tunnel }) => tunnel?.encapDestinationPort));
  return [
    ...state.fouPorts
      .filter((actual) => ports.has(actual.port) && isOurs(actual))
      .filter((actual) => !wanted.fouPorts.some((port) => sameNumber(port, actual)))
      .map(deletePortCommand),
    ...leftoverLinks(wanted, state)
      .filter((leftover) => !wanted.links.some((link) => sameAddresses(link, leftover)))
      .map(({ name }) => `link del ${name}`),
  ];
}

/** Our links that the plan does not want. */
export function leftoverLinks(wanted: Pick<Tunnels, "links">, state: NetworkState): LinkState[] {
  const names = new Set(wanted.links.map(linkName));
  return tunnelLinks(state).filter(({ name }) => !names.has(name));
}

function tunnelLinks(state: NetworkState): LinkState[] {
  return state.links.filter(({ name, tunnel }) => tunnel !== undefined && isLinkName(name));
}

const FAMILY_WORDS: Readonly<Record<Family, readonly string[]>> = { ipv4: [], ipv6: ["-6"] };

function addPortCommand({ family, port }: FouPort): string {
  return ["fou add port", port, "ipproto", TUNNEL_PROTOCOLS[family], ...FAMILY_WORDS[family]].join(" ");
}

function deletePortCommand({ family, port, binding }: FouPortState): string {
  return ["fou del port", port, ...(binding === "" ? [] : [binding]), ...FAMILY_WORDS[family]].join(" ");
}

function isOurs({ family, protocol, binding }: FouPortState): boolean {
  return protocol === TUNNEL_PROTOCOLS[family] && binding === "";
}

function sameNumber(port: FouPort, actual: FouPortState): boolean {
  return actual.family === port.family && actual.port === port.port;
}

/** By these the kernel tells the links of one kind apart. */
function sameAddresses(link: TunnelLink, { tunnel }: LinkState): boolean {
  return (
    tunnel?.kind === (link.family === "ipv4" ? "ipip" : "ip6tnl") &&
    tunnel.local === link.local &&
    tunnel.remote === (link.remote === undefined ? "any" : canonicalAddress(link.remote)) &&
    tunnel.boundTo === (link.sourcePortAuto ? link.uplink : undefined)
  );
}

function sameTunnel(link: TunnelLink, actual: LinkState): boolean {
  const { tunnel, group } = actual;
  return (
    tunnel !== undefined &&
    sameAddresses(link, actual) &&
    group === linkGroup(link) &&
    tunnel.ttl === TUNNEL_TTL &&
    tunnel.inheritsTos === (link.remote === undefined) &&
    !tunnel.limitsEncapsulation &&
    !tunnel.encapChecksum &&
    tunnel.encapSourcePort === (link.sourcePortAuto ? 0 : link.port) &&
    tunnel.encapDestinationPort === link.port
  );
}
