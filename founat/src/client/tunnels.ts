import { FAMILIES, type Family, familyOf, firstOfEach } from "@egress-nat/addresses";
import { linkName, receivingLink, type TunnelLinkKey } from "../iproute/links.ts";
import type { ClientEgress, ClientGateway } from "./config.ts";
import { type PinNumbers, pinKey } from "./pins.ts";

/**
 * The Egress with those of its gateways that a link is for: they take new flows, or may soon, or have a link, by which
 * alone they can have flows.
 */
export function withLinked(egress: ClientEgress, known: PinNumbers): ClientEgress {
  const isLinked = (address: string) =>
    known.has(pinKey(linkName(linkTo(familyOf(address), egress, address))));
  const gateways = egress.gateways.flatMap((gateway): ClientGateway[] => {
    if (gateway.flows !== "existing") return [gateway];
    const linked = FAMILIES.flatMap((family) => gateway[family] ?? []).filter(isLinked);
    return linked.length === 0 ? [] : [{ ...firstOfEach(linked), flows: "existing" }];
  });
  return { ...egress, gateways };
}

/** The Egress without some addresses of gateways. */
export function withoutAddresses(addresses: ReadonlySet<string>, egress: ClientEgress): ClientEgress {
  const gateways = egress.gateways.flatMap(({ flows, ...gateway }): ClientGateway[] => {
    const left = FAMILIES.flatMap((family) => gateway[family] ?? []).filter(
      (address) => !addresses.has(address),
    );
    return left.length === 0 ? [] : [{ ...firstOfEach(left), ...(flows && { flows }) }];
  });
  return { ...egress, gateways };
}

/**
 * The addresses of an Egress's gateways.
 *
 * @param which by default all
 */
export function gatewaysOf(
  family: Family,
  { gateways }: ClientEgress,
  which: (gateway: ClientGateway) => boolean = () => true,
): string[] {
  return [...new Set(gateways.filter(which).flatMap(({ [family]: address }) => address ?? []))];
}

/** The links that new flows of an Egress begin on. */
export function choicesOf(family: Family, egress: ClientEgress): TunnelLinkKey[] {
  const takesNew = ({ flows = "new" }: ClientGateway) => flows === "new";
  return gatewaysOf(family, egress, takesNew).map((address) => linkTo(family, egress, address));
}

/** The link that routes of an Egress lead to. */
export function tunnelOf(family: Family, egress: ClientEgress): TunnelLinkKey {
  // Without a gateway there is a route all the same: replies to inbound flows are looked up before they are sent the
  // other way. The guard refuses everything else.
  return choicesOf(family, egress)[0] ?? receivingLink(family);
}

/**
 * A link for each gateway address, and one for what gateways send from other addresses than that: from their own, where
 * the node has forgotten that it had translated the client's packets.
 */
export function tunnelsOf(family: Family, egresses: Iterable<ClientEgress>): TunnelLinkKey[] {
  const keys = [receivingLink(family)];
  for (const egress of egresses) keys.push(...linksOf(family, egress));
  return [...new Map(keys.map((key) => [linkName(key), key])).values()];
}

/** Those to all gateways of an Egress. */
export function linksOf(family: Family, egress: ClientEgress): TunnelLinkKey[] {
  return gatewaysOf(family, egress).map((address) => linkTo(family, egress, address));
}

function linkTo(family: Family, { sourcePortAuto }: ClientEgress, remote: string): TunnelLinkKey {
  return { family, sourcePortAuto, remote };
}
