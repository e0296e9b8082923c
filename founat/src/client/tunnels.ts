import type { Family } from "@egress-nat/addresses";
import { FounatError } from "../error.ts";
import { linkName, receivingLink, type TunnelLinkKey } from "../iproute/links.ts";
import type { ClientEgress } from "./config.ts";

/** The addresses of an Egress's gateways. */
export function gatewaysOf(family: Family, { gateways }: ClientEgress): string[] {
  return gateways.flatMap(({ [family]: address }) => address ?? []);
}

/**
 * The gateway that packets of an Egress go to. There is one, because a route leads to one link.
 *
 * @throws FounatError `invalid-config` where there are several
 */
export function gatewayOf(family: Family, egress: ClientEgress): string | undefined {
  const [gateway, ...others] = gatewaysOf(family, egress);
  if (others.length === 0) return gateway;
  throw new FounatError(
    "invalid-config",
    `Egress ${egress.name} has ${1 + others.length} gateways of ${family}; a client's routes lead to one: name one`,
  );
}

/** The link that packets of an Egress leave by. */
export function tunnelOf(family: Family, egress: ClientEgress): TunnelLinkKey {
  const remote = gatewayOf(family, egress);
  // Without a gateway there is a route all the same: replies to inbound flows are looked up before they are sent the
  // other way. The guard refuses everything else.
  return remote === undefined
    ? receivingLink(family)
    : { family, sourcePortAuto: egress.sourcePortAuto, remote };
}

/**
 * A link for each gateway address, and one for what gateways send from other addresses than that: from their own, where
 * the node has forgotten that it had translated the client's packets.
 */
export function tunnelsOf(family: Family, egresses: Iterable<ClientEgress>): TunnelLinkKey[] {
  const keys = [receivingLink(family)];
  for (const egress of egresses) {
    const { sourcePortAuto } = egress;
    keys.push(...gatewaysOf(family, egress).map((remote) => ({ family, sourcePortAuto, remote })));
  }
  return [...new Map(keys.map((key) => [linkName(key), key])).values()];
}
