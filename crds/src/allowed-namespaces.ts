/** Whose pods may be clients of an Egress: read by agents, which refuse, and by gateways, which drop. */

import type { Egress } from "./egress.ts";

/** The part of an Egress that says it. */
export interface NamespaceBounds {
  readonly metadata: Pick<Egress["metadata"], "generation">;
  readonly spec: Pick<Egress["spec"], "allowedNamespaces">;
  readonly status?:
    | Pick<NonNullable<Egress["status"]>, "allowedNamespaces" | "observedGeneration">
    | undefined;
  /** Of an Egress that is not understood; its spec may have a selector that nobody can read. */
  readonly invalid?: string | undefined;
}

/**
 * Which namespaces may use an Egress, as the operator has resolved its selector. An Egress whose selector has never been
 * resolved lets nobody in, unless it has just been given one: until the operator has looked, what held before holds on.
 * So it does while the Egress is not understood.
 *
 * @returns a test of a namespace's name
 */
export function namespaceTest({
  metadata,
  spec,
  status,
  invalid,
}: NamespaceBounds): (namespace: string) => boolean {
  if (invalid === undefined && spec.allowedNamespaces === undefined) return () => true;
  const { allowedNamespaces, observedGeneration } = status ?? {};
  if (allowedNamespaces !== undefined) {
    const allowed = new Set(allowedNamespaces);
    return (namespace) => allowed.has(namespace);
  }
  const hadNoSelector =
    observedGeneration !== undefined && (invalid !== undefined || observedGeneration < metadata.generation);
  return () => hadNoSelector;
}
