/** What the API server says of an Egress's children, as far as the operator looks at it. */

import { OPERATOR } from "@egress-nat/crds";
import { type FieldSet, OwnerReferences, sharingLeaves } from "@egress-nat/kube";
import { z } from "zod";
import { CHILD_RESOURCES, type ChildKind } from "./children/index.ts";

/** As much of an entry as tells what was applied. The rest, and the entries of others, are a third of the object. */
const ManagedFieldsEntry = z.object({
  manager: z.string().optional(),
  operation: z.string().optional(),
  subresource: z.string().optional(),
  fieldsV1: z
    .custom<FieldSet>((fields) => typeof fields === "object" && fields !== null)
    .transform(sharingLeaves)
    .optional(),
});

const Metadata = z.object({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.int().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  ownerReferences: OwnerReferences.optional(),
  managedFields: z
    .array(ManagedFieldsEntry)
    .transform((entries) => entries.filter(({ manager }) => manager === OPERATOR))
    .optional(),
});

/** Any child: whose it is, and what of it was applied. */
const Child = z.object({ apiVersion: z.string(), kind: z.string(), metadata: Metadata });
export type ObservedChild = z.infer<typeof Child>;

const count = z.int().default(0);

const Deployment = Child.extend({
  spec: z.object({
    ...{ replicas: count, strategy: z.unknown().optional() },
    template: z.object({ spec: z.object({ serviceAccountName: z.string().optional() }) }).optional(),
  }),
  status: z.object({
    observedGeneration: z.int().default(0),
    replicas: count,
    readyReplicas: count,
    availableReplicas: count,
    updatedReplicas: count,
    conditions: z
      .array(
        z.object({
          type: z.string(),
          status: z.string(),
          reason: z.string().default(""),
          message: z.string().default(""),
        }),
      )
      .default([]),
  }),
});
export type ObservedDeployment = z.infer<typeof Deployment>;

const RoleBinding = Child.extend({
  subjects: z
    .array(z.object({ kind: z.string(), name: z.string(), namespace: z.string().optional() }))
    .default([]),
});
export type ObservedRoleBinding = z.infer<typeof RoleBinding>;

const Service = Child.extend({ spec: z.object({ clusterIPs: z.array(z.string()).default([]) }) });
export type ObservedService = z.infer<typeof Service>;

const SCHEMAS = {
  ...{ serviceAccount: Child, role: Child, roleBinding: RoleBinding },
  ...{ service: Service, deployment: Deployment, disruptionBudget: Child },
} as const satisfies Record<ChildKind, z.ZodType>;

type ObservedByKind = { readonly [K in ChildKind]: z.infer<(typeof SCHEMAS)[K]> };

export type ObservedOf<K extends ChildKind> = ObservedByKind[K];

/** The children of one Egress that exist; none of them need be its own. */
export type ObservedChildren = { readonly [K in ChildKind]: ObservedOf<K> | undefined };

export function childParser<K extends ChildKind>(kind: K): (raw: unknown) => ObservedOf<K> {
  return (raw) => SCHEMAS[kind].parse(raw) as ObservedOf<K>;
}

/**
 * @typeParam M what there is one of for each kind of child
 * @param make gives the one of this kind; TypeScript cannot tell
 */
export function forEachChild<M extends Readonly<Record<ChildKind, unknown>>>(
  make: (kind: ChildKind) => unknown,
): M {
  const kinds = Object.keys(CHILD_RESOURCES) as ChildKind[];
  return Object.fromEntries(kinds.map((kind) => [kind, make(kind)])) as M;
}

export const NO_CHILDREN = forEachChild<ObservedChildren>(() => undefined);
