import { type Egress, OPERATOR } from "@egress-nat/crds";
import { appliedFields, type Endpoint } from "@egress-nat/kube";
import { serviceAccountName } from "./children/access.ts";
import { CHILD_RESOURCES } from "./children/index.ts";
import type { ObservedChildren } from "./observed.ts";
import { isObserved } from "./rollout.ts";

/**
 * Gateways go on to read their Egress and its clients until they end, also where others replace them that have another
 * account: for as long as a drain lasts, or until the author mends an account that starts none.
 *
 * @param gateways all of the Egress's, those that end as well
 * @returns names of the accounts besides the current one that may still be in use
 */
export function formerAccounts(
  egress: Egress,
  { roleBinding, deployment }: ObservedChildren,
  gateways: readonly Pick<Endpoint, "terminating">[],
): readonly string[] {
  if (roleBinding === undefined || deployment === undefined) return [];
  const current = serviceAccountName(egress);
  const { spec, status } = deployment;
  const owned = appliedFields(roleBinding.metadata.managedFields, OPERATOR)?.["f:subjects"];
  const isReplaced =
    spec.template?.spec.serviceAccountName === current &&
    isObserved(deployment) &&
    status.updatedReplicas === status.replicas &&
    status.readyReplicas === status.replicas &&
    gateways.length <= status.replicas &&
    gateways.every(({ terminating }) => !terminating);
  if (isReplaced || owned === undefined) return [];
  const { kind } = CHILD_RESOURCES.serviceAccount;
  const { namespace } = egress.metadata;
  return roleBinding.subjects
    .filter((subject) => subject.kind === kind && subject.namespace === namespace && subject.name !== current)
    .map(({ name }) => name)
    .toSorted();
}
