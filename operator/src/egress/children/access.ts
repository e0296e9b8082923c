/**
 * What the gateways of an Egress may do in the Kubernetes API, here only: read their Egress and its clients, and make
 * events. Not change any: an event may be somebody else's.
 */

import { API_GROUP, EGRESS_RESOURCE, type Egress, SLICE_RESOURCE } from "@egress-nat/crds";
import type { V1PodSpec, V1Role, V1RoleBinding } from "@kubernetes/client-node";
import { CHILD_RESOURCES, head, type Manifest } from "./manifest.ts";

/** The ServiceAccount of the gateway pods: the template's, or the one that the operator makes. */
export function serviceAccountName(egress: Egress): string {
  const { serviceAccountName: chosen } = (egress.spec.template?.spec ?? {}) as Partial<V1PodSpec>;
  return chosen ?? egress.metadata.name;
}

export function serviceAccount(egress: Egress): Manifest {
  return head(CHILD_RESOURCES.serviceAccount, egress);
}

export function role(egress: Egress): Manifest {
  const rules = [
    {
      apiGroups: [API_GROUP],
      resources: [EGRESS_RESOURCE.plural, SLICE_RESOURCE.plural],
      verbs: ["list", "watch"],
    },
    { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"] },
  ] satisfies V1Role["rules"];
  return { ...head(CHILD_RESOURCES.role, egress), rules };
}

/** @param former names of accounts that gateways have which are about to be replaced */
export function roleBinding(egress: Egress, former: readonly string[]): Manifest {
  const { name, namespace } = egress.metadata;
  const { kind } = CHILD_RESOURCES.serviceAccount;
  const binding = {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: CHILD_RESOURCES.role.kind, name },
    subjects: [serviceAccountName(egress), ...former].map((account) => ({ kind, name: account, namespace })),
  } satisfies V1RoleBinding;
  return { ...head(CHILD_RESOURCES.roleBinding, egress), ...binding };
}
