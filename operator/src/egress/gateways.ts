/** The gateways of an Egress as its status shows them. */

import type { GatewayStatus } from "@egress-nat/crds";
import type { Endpoint } from "@egress-nat/kube";

/** @returns one entry for each pod, by name */
export function gatewayStatuses(endpoints: readonly Endpoint[]): GatewayStatus[] {
  return endpoints
    .map((endpoint) => ({
      name: endpoint.name,
      ...(endpoint.nodeName !== undefined && { node: endpoint.nodeName }),
      addresses: [...endpoint.addresses],
      state: stateOf(endpoint),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function stateOf({ ready, terminating }: Endpoint): GatewayStatus["state"] {
  if (ready) return "Ready";
  return terminating ? "Draining" : "Down";
}
