import { guardOf, guardRemoval } from "../backends/nft/guard.ts";
import { type Changes, inOrder } from "../difference.ts";
import { ipBatch, ipChanges, routingLines } from "../iproute/batch.ts";
import { linkChanges, linkRemovals } from "../iproute/links.ts";
import type { Step } from "../kernel/step.ts";
import type { ClientPlan } from "./plan.ts";
import { CLIENT_TABLES } from "./routes.ts";
import type { ClientState } from "./state.ts";
import { sysctlChanges } from "./sysctls.ts";

/**
 * What leads from the kernel's state to the plan. After each line of it packets to guarded destinations leave through
 * the tunnel or not at all, so that it may be interrupted anywhere: the next run reads what is there and does the rest.
 *
 * @param guard what leads to the plan's policy; it comes first
 */
export function clientChanges(plan: ClientPlan, state: Omit<ClientState, "guard">, guard: Changes): Changes {
  const links = linkChanges(plan, state);
  const sysctls = sysctlChanges(plan.sysctls, state.sysctls, links.replaced);
  const lines4 = [
    ...links.make,
    ...links.bringUp,
    ...routingLines("ipv4", plan, state, CLIENT_TABLES, links.replaced),
  ];
  const lines6 = [...plan.forget, ...routingLines("ipv6", plan, state, CLIENT_TABLES, links.replaced)];
  const ofSysctls = Object.entries(sysctls).map(([path, value]) => ({
    object: "sysctl",
    text: `sysctl ${path} is not ${value}`,
  }));
  return inOrder(
    guard,
    ipChanges([], lines4),
    { differences: ofSysctls, steps: ofSysctls.length > 0 ? [{ sysctls }] : [] },
    ipChanges(["-6"], lines6),
    ipChanges([], linkRemovals(plan, state)),
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
