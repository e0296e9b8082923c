/** The gateways of an Egress as its status shows them. */

import type { GatewayStatus } from "@egress-nat/crds";
import type { Endpoint } from "@egress-nat/kube";

/**
 * @param reasons why those that do not serve say that they do not, by name
 * @returns one entry for each pod, by name
 */
export function gatewayStatuses(
  endpoints: readonly Endpoint[],
  reasons: ReadonlyMap<string, string>,
): GatewayStatus[] {
  return endpoints
    .map((endpoint) => {
      const state = stateOf(endpoint);
      const reason = state === "Down" ? reasons.get(endpoint.name) : undefined;
      return {
        name: endpoint.name,
        ...(endpoint.nodeName !== undefined && { node: endpoint.nodeName }),
        addresses: [...endpoint.addresses],
        state,
        ...(reason !== undefined && { reason }),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function stateOf({ ready, terminating }: Endpoint): GatewayStatus["state"] {
  if (ready) return "Ready";
  return terminating ? "Draining" : "Down";
}
