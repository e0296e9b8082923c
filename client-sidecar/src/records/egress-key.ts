import type { EgressReference } from "./schema.ts";

/** "namespace/name": how an Egress is named to people, and in maps. */
export function egressKey({ namespace, name }: EgressReference): string {
  return `${namespace}/${name}`;
}
