/** Whose pods may be clients of an Egress: read by agents, which refuse, and by gateways, which drop. */

import type { Egress } from "./egress.ts";

/** The part of an Egress that says it. */
export interface NamespaceBounds {
  readonly metadata: Pick<Egress["metadata"], "generation">;
  readonly spec: Pick<Egress["spec"], "allowedNamespaces">;
  readonly status?:
    | Pick<NonNullable<Egress["status"]>, "allowedNamespaces" | "observedGeneration">
    | undefined;
}

/**
 * Which namespaces may use an Egress, as the operator has resolved its selector. An Egress whose selector has never been
 * resolved lets nobody in, unless it has just been given one: until the operator has looked, what held before holds on.
 *
 * @returns a test of a namespace's name
 */
export function namespaceTest({ metadata, spec, status }: NamespaceBounds): (namespace: string) => boolean {
  if (spec.allowedNamespaces === undefined) return () => true;
  const { allowedNamespaces, observedGeneration } = status ?? {};
  if (allowedNamespaces !== undefined) {
    const allowed = new Set(allowedNamespaces);
    return (namespace) => allowed.has(namespace);
  }
  const hadNoSelector = observedGeneration !== undefined && observedGeneration < metadata.generation;
  return () => hadNoSelector;
}
