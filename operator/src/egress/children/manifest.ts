/** What every child of an Egress has in common. */

import { EGRESS_LABEL, EGRESS_RESOURCE, type Egress, labelValue, OPERATOR } from "@egress-nat/crds";
import { namespacedResource, type ObjectMeta, type Resource } from "@egress-nat/kube";

/** An object of the Kubernetes API as it is applied: only the fields that the operator answers for. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta & { readonly namespace: string };
  readonly [field: string]: unknown;
}

/** The kinds of objects that an Egress is made of. */
export const CHILD_RESOURCES = {
  serviceAccount: namespacedResource("v1", "serviceaccounts", "ServiceAccount"),
  role: namespacedResource("rbac.authorization.k8s.io/v1", "roles", "Role"),
  roleBinding: namespacedResource("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
  service: namespacedResource("v1", "services", "Service"),
  deployment: namespacedResource("apps/v1", "deployments", "Deployment"),
  disruptionBudget: namespacedResource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
} as const satisfies Record<string, Resource>;

export type ChildKind = keyof typeof CHILD_RESOURCES;

/** The label that the gateway pods of an Egress, and nothing else in its namespace that runs, have. */
export function gatewayLabels(egress: Pick<Egress, "metadata">): Readonly<Record<string, string>> {
  return { [EGRESS_LABEL]: labelValue(egress.metadata.name) };
}

/** The head of a child: named as its Egress, found by its label, and removed with it by the garbage collector. */
export function head(resource: Resource, egress: Egress): Pick<Manifest, "apiVersion" | "kind" | "metadata"> {
  const { name, namespace, uid } = egress.metadata;
  return {
    apiVersion: resource.apiVersion,
    kind: resource.kind,
    metadata: {
      name,
      namespace,
      labels: {
        "app.kubernetes.io/name": "egress-nat",
        "app.kubernetes.io/component": "gateway",
        "app.kubernetes.io/managed-by": OPERATOR,
        ...gatewayLabels(egress),
      },
      ownerReferences: [
        {
          apiVersion: EGRESS_RESOURCE.apiVersion,
          kind: EGRESS_RESOURCE.kind,
          name,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
  };
}
