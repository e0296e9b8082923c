/** The objects that an Egress is made of, as plain data. */

import type { Egress } from "@egress-nat/crds";
import { role, roleBinding, serviceAccount } from "./access.ts";
import { deployment } from "./deployment.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import type { GatewaySettings } from "./gateway-container.ts";
import type { ChildKind, Manifest } from "./manifest.ts";
import { service } from "./service.ts";

export type { GatewaySettings } from "./gateway-container.ts";
export { CHILD_RESOURCES, type ChildKind, gatewayLabels, type Manifest } from "./manifest.ts";

/**
 * The children that an Egress should have, in the order in which they are applied: what gateways need to start comes
 * before the gateways.
 *
 * @param formerAccounts those that gateways have which are about to be replaced
 * @returns undefined for a child that should not be
 */
export function desiredChildren(
  egress: Egress,
  settings: GatewaySettings,
  formerAccounts: readonly string[] = [],
): Readonly<Record<ChildKind, Manifest | undefined>> {
  return {
    serviceAccount: serviceAccount(egress),
    role: role(egress),
    roleBinding: roleBinding(egress, formerAccounts),
    service: service(egress),
    deployment: deployment(egress, settings),
    disruptionBudget: disruptionBudget(egress),
  };
}
