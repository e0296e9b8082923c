import type { EgressReference } from "./schema.ts";

/** "namespace/name": how an Egress is named to people, and in maps. */
export function egressKey({ namespace, name }: EgressReference): string {
  return `${namespace}/${name}`;
}

/** The Egress that {@link egressKey} has named. */
export function egressOfKey(key: string): EgressReference {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}
