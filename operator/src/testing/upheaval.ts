/** What people and accidents may do to a few Egresses, as plain data: a test performs it, and prints it when it fails. */

import { EGRESS_LABEL } from "@egress-nat/crds";
import fc from "fast-check";
import type { ChildKind } from "../egress/children/index.ts";

/** One thing that happens. */
export type Upheaval =
  /** Makes the Egress, or gives it this spec. */
  | { readonly what: "write"; readonly egress: string; readonly spec: object }
  | { readonly what: "delete"; readonly egress: string }
  /** The garbage collector has its turn. */
  | { readonly what: "collect" }
  /** Somebody changes a child by hand. */
  | { readonly what: "edit"; readonly egress: string; readonly child: ChildKind; readonly patch: object }
  | { readonly what: "delete child"; readonly egress: string; readonly child: ChildKind }
  | { readonly what: "start operator" | "stop operator" }
  /** The operator, if it can, catches up before anything else happens. */
  | { readonly what: "catch up" }
  /** Of the connection between the operator and the API server. */
  | { readonly what: "cut" | "restore" };

const egress = fc.constantFrom("one", "two");

const optional = <T>(...values: readonly T[]) => fc.constantFrom(undefined, ...values);

/** Fields whose absence or value excludes others, or changes what is a child at all. */
const spec = fc
  .record({
    replicas: optional(0, 3),
    podDisruptionBudget: optional<object>({ minAvailable: "50%" }, { maxUnavailable: 1 }),
    strategy: optional<object>({ type: "Recreate" }, { rollingUpdate: { maxSurge: 1 } }),
    sessionAffinity: optional("None"),
    template: optional<object>(
      { metadata: { labels: { team: "network" } } },
      { spec: { containers: [{ name: "egress", resources: { limits: { memory: "1024Mi" } } }] } },
    ),
  })
  .map((fields) => ({
    destinations: ["0.0.0.0/0"],
    ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
  }));

const STRANGER = { apiVersion: "v1", kind: "ConfigMap", name: "stranger", uid: "5", controller: true };

const METADATA_EDITS: readonly object[] = [
  { labels: { [EGRESS_LABEL]: null } },
  { labels: { [EGRESS_LABEL]: "other", "app.kubernetes.io/managed-by": "other" } },
  { labels: { team: "network" } },
  { annotations: null },
  { ownerReferences: null },
  { ownerReferences: [STRANGER] },
];

const EDITS: Readonly<Record<ChildKind, readonly object[]>> = {
  serviceAccount: [],
  role: [{ rules: [] }],
  roleBinding: [{ subjects: null }],
  service: [
    { spec: { selector: { app: "other" } } },
    { spec: { sessionAffinity: "None", sessionAffinityConfig: null } },
    { spec: { sessionAffinity: "ClientIP" } },
    { spec: { type: "NodePort" } },
    { spec: { ports: [{ name: "fou", protocol: "UDP", port: 6666, targetPort: 6666 }] } },
  ],
  deployment: [
    { spec: { replicas: 7 } },
    { spec: { strategy: { type: "Recreate", rollingUpdate: null } } },
    { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 2 } } } },
    { spec: { template: { spec: { serviceAccountName: "other", nodeSelector: null } } } },
    { spec: { template: { spec: { containers: [{ name: "egress", image: "other:1" }] } } } },
  ],
  disruptionBudget: [
    { spec: { minAvailable: null, maxUnavailable: 2 } },
    { spec: { minAvailable: 2, maxUnavailable: null } },
  ],
};

const child = fc.constantFrom(...(Object.keys(EDITS) as ChildKind[]));

const edit = fc.oneof(
  fc.record({ child, patch: fc.constantFrom(...METADATA_EDITS.map((metadata) => ({ metadata }))) }),
  fc.constantFrom(
    ...Object.entries(EDITS).flatMap(([kind, patches]) =>
      patches.map((patch) => ({ child: kind as ChildKind, patch })),
    ),
  ),
);

const upheaval: fc.Arbitrary<Upheaval> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant("write" as const), egress, spec }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("delete" as const), egress }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("collect" as const) }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant("catch up" as const) }) },
  {
    weight: 5,
    arbitrary: fc
      .tuple(egress, edit)
      .map(([name, patched]) => ({ what: "edit" as const, egress: name, ...patched })),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("delete child" as const), egress, child }) },
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constantFrom(
        "start operator" as const,
        "stop operator" as const,
        "cut" as const,
        "restore" as const,
      ),
    }),
  },
);

/** It begins with one Egress that is there. */
export const upheavals = fc
  .tuple(spec, fc.array(upheaval, { minLength: 4, maxLength: 12 }))
  .map(([first, rest]): readonly Upheaval[] => [
    { what: "write", egress: "one", spec: first },
    { what: "catch up" },
    ...rest,
  ]);
