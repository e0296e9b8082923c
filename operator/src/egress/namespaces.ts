/** Which namespaces an Egress allows, and which Egresses a change of a namespace concerns. */

import { selects } from "@egress-nat/crds";
import type { KubeObject } from "@egress-nat/kube";
import { z } from "zod";
import type { StoredEgress } from "./status.ts";

/** All that the operator keeps of a namespace. */
export const NamespaceHead = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
  }),
});
export type NamespaceHead = z.infer<typeof NamespaceHead> & KubeObject;

/** @returns names, sorted; undefined where the Egress allows all */
export function allowedNamespaces(
  { spec }: Pick<StoredEgress, "spec">,
  namespaces: readonly NamespaceHead[],
): string[] | undefined {
  const selector = spec.allowedNamespaces;
  if (selector === undefined) return undefined;
  return namespaces
    .filter(({ metadata }) => selects(selector, metadata.labels))
    .map(({ metadata }) => metadata.name)
    .sort();
}

/**
 * Whether an Egress's status says something else of a namespace than is the case now.
 *
 * @param labels of the namespace; undefined where it is gone
 */
export function concerns(
  { spec, status }: Pick<StoredEgress, "spec" | "status">,
  name: string,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  if (spec.allowedNamespaces === undefined) return false;
  const isAllowed = labels !== undefined && selects(spec.allowedNamespaces, labels);
  return isAllowed !== (status?.allowedNamespaces?.includes(name) ?? false);
}
