import type { Family } from "@egress-nat/addresses";
import { guardOf, guardRemoval } from "../backends/nft/guard.ts";
import { type Changes, inOrder } from "../difference.ts";
import {
  ipBatch,
  ipChanges,
  type Routing,
  routingAdditions,
  routingLines,
  routingRemovals,
} from "../iproute/batch.ts";
import { linkChanges, linkRemovals } from "../iproute/links.ts";
import { perl } from "../kernel/perl.ts";
import type { Step } from "../kernel/step.ts";
import { endFlows } from "./end-flows.ts";
import { stalePins } from "./pins.ts";
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
  const add = (family: Family, routing: Routing) => routingAdditions(family, routing, state, links.replaced);
  const [pins4, pins6] = [add("ipv4", plan.pinning), add("ipv6", plan.pinning)];
  const [routes4, routes6] = [add("ipv4", plan), [...plan.forget, ...add("ipv6", plan)]];
  const wanted = {
    bypassRules: plan.bypassRules,
    routes: [...plan.pinning.routes, ...plan.routes],
    rules: [...plan.pinning.rules, ...plan.rules],
  };
  const old = (family: Family) => routingRemovals(family, wanted, state, CLIENT_TABLES, links.replaced);
  const [old4, old6, oldLinks] = [old("ipv4"), old("ipv6"), linkRemovals(plan, state)];
  if (state.guard === undefined) {
    const lines4 = ipChanges([], [...makeLinks, ...pins4, ...routes4, ...old4]);
    const lines6 = ipChanges(["-6"], [...pins6, ...routes6, ...old6]);
    return inOrder(guard, lines4, writes, lines6, ipChanges([], oldLinks));
  }
  return inOrder(
    ipChanges([], [...makeLinks, ...pins4]),
    writes,
    ipChanges(["-6"], pins6),
    guard,
    ipChanges([], routes4),
    ipChanges(["-6"], routes6),
    // Before the rules of their marks go: the next look takes flows for ended whose rules are gone.
    { differences: [], steps: perl(endFlows(stalePins(plan.policy.pins, state))) },
    ipChanges(["-6"], old6),
    ipChanges([], [...old4, ...oldLinks]),
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
