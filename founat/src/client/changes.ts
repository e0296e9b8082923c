import { guardOf, guardRemoval } from "../backends/nft/guard.ts";
import { type Changes, inOrder } from "../difference.ts";
import { ipBatch, ipChanges, pinLines, routingLines } from "../iproute/batch.ts";
import { linkChanges, linkRemovals } from "../iproute/links.ts";
import type { Step } from "../kernel/step.ts";
import { endFlows, removesPin, stalePins } from "./pins.ts";
import type { ClientPlan } from "./plan.ts";
import { CLIENT_TABLES } from "./routes.ts";
import type { ClientState } from "./state.ts";
import { sysctlChanges } from "./sysctls.ts";

/** What there is; its guard is not known where it is none. */
type FormerState = Omit<ClientState, "guard"> & Partial<Pick<ClientState, "guard">>;

/**
 * What leads from the kernel's state to the plan. After each line of it packets to guarded destinations leave through
 * the tunnel or not at all, so that it may be interrupted anywhere: the next run reads what is there and does the rest.
 *
 * @param guard what leads to the plan's policy. Where there is none it comes first; else the links are there by then
 *   that new flows are to begin on, and the routes lead to them later.
 */
export function clientChanges(plan: ClientPlan, state: FormerState, guard: Changes): Changes {
  const links = linkChanges(plan, state);
  const sysctls = sysctlChanges(plan.sysctls, state.sysctls, links.replaced);
  const ofSysctls = Object.entries(sysctls).map(([path, value]) => ({
    object: "sysctl",
    text: `sysctl ${path} is not ${value}`,
  }));
  const writes = { differences: ofSysctls, steps: ofSysctls.length > 0 ? [{ sysctls }] : [] };
  const makeLinks = [...links.make, ...links.bringUp];
  const [pins4, pins6] = [
    pinLines("ipv4", plan, state, links.replaced),
    pinLines("ipv6", plan, state, links.replaced),
  ];
  const routes4 = routingLines("ipv4", plan, state, CLIENT_TABLES, links.replaced);
  const routes6 = [...plan.forget, ...routingLines("ipv6", plan, state, CLIENT_TABLES, links.replaced)];
  const isUrgent = (line: string) => !removesPin(line);
  const removals = linkRemovals(plan, state);
  if (state.guard === undefined) {
    const lines4 = ipChanges([], [...makeLinks, ...pins4, ...routes4]);
    return inOrder(guard, lines4, writes, ipChanges(["-6"], [...pins6, ...routes6]), ipChanges([], removals));
  }
  return inOrder(
    ipChanges([], [...makeLinks, ...pins4]),
    writes,
    ipChanges(["-6"], pins6),
    guard,
    ipChanges([], routes4.filter(isUrgent)),
    ipChanges(["-6"], routes6.filter(isUrgent)),
    { differences: [], steps: stalePins(plan.policy.pins, state).map(endFlows) },
    ipChanges(["-6"], routes6.filter(removesPin)),
    ipChanges([], [...routes4.filter(removesPin), ...removals]),
  );
}

/**
 * What makes a client of a namespace that nobody has made one. The guard is the first that is made and the last that is
 * taken away, so it need not be known what else is there: the first step fails where there is a guard.
 */
export function clientCreation(plan: ClientPlan, network: Omit<ClientState, "guard">): readonly Step[] {
  const guard = { differences: [], steps: [guardOf(plan.policy).creation()] };
  return clientChanges(plan, network, guard).steps;
}

/** What takes all that is founat's out of the kernel, guard last. */
export function clientRemoval(state: ClientState): Step[] {
  const nothing = { routes: [], bypassRules: [], rules: [], fouPorts: [], links: [] };
  return [
    ...ipBatch(["-6"], routingLines("ipv6", nothing, state, CLIENT_TABLES, new Set())),
    ...ipBatch(
      [],
      [...routingLines("ipv4", nothing, state, CLIENT_TABLES, new Set()), ...linkRemovals(nothing, state)],
    ),
    ...guardRemoval(state.guard),
  ];
}
