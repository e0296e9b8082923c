import { type Changes, inOrder } from "../difference.ts";
import { ipBatch, ipChanges, routingLines } from "../iproute/batch.ts";
import { type LinkChanges, leftoverLinks, linkRemovals } from "../iproute/links.ts";
import type { NetworkState } from "../iproute/state.ts";
import { GATEWAY_TABLES, type GatewayPlan } from "./plan.ts";

/**
 * What leads from the kernel's state to the plan: the packet filter, which needs the links, is there before they are up.
 * Clients stay as they are.
 *
 * @param links what `linkChanges` says
 * @param filter what leads to the plan's policy
 */
export function gatewayChanges(
  plan: GatewayPlan,
  state: NetworkState,
  links: LinkChanges,
  filter: Changes,
): Changes {
  const lines4 = [
    // The way of probes ends at lo. The kernel takes no route by an interface that is down.
    ...state.links.filter(({ name, up }) => name === "lo" && !up).map(() => "link set lo up"),
    ...links.bringUp,
    ...routingLines("ipv4", plan, state, GATEWAY_TABLES, links.replaced),
  ];
  const lines6 = routingLines("ipv6", plan, state, GATEWAY_TABLES, links.replaced);
  const removals = linkRemovals(plan, state);
  // A link that the new packet filter knows nothing of would bring in packets without their check.
  const stops = leftoverLinks(plan, state)
    .filter(({ up }) => up)
    .map(({ name }) => `link set ${name} down`);
  return inOrder(
    { differences: [], steps: ipBatch([], [...stops, ...links.make]) },
    filter,
    { ...ipChanges([], [...links.make, ...lines4]), steps: ipBatch([], lines4) },
    ipChanges(["-6"], lines6),
    ipChanges([], removals),
  );
}
