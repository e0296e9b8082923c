/** How a pod opts in: the annotations that name Egresses. */

import { CLIENT_ANNOTATION_PREFIX, GATEWAY_ANNOTATION } from "@egress-nat/crds/names";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import { ClientError } from "./error.ts";

export type Annotations = Readonly<Record<string, string>>;

/** RFC 1123 label: what names of namespaces and Egresses are. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Those that make a pod a client or a gateway. */
export function concerning(annotations: Annotations): Annotations {
  return Object.fromEntries(
    Object.entries(annotations).filter(
      ([key, value]) =>
        key.startsWith(CLIENT_ANNOTATION_PREFIX) || (key === GATEWAY_ANNOTATION && value === "true"),
    ),
  );
}

/**
 * The Egresses that a pod opts in to, in the annotations' order, each once.
 *
 * @throws ClientError `annotation-malformed`
 */
export function optIns(annotations: Annotations): readonly EgressReference[] {
  const references = Object.entries(annotations)
    .filter(([key]) => key.startsWith(CLIENT_ANNOTATION_PREFIX))
    .flatMap(([key, value]) => optIn(key, value));
  return [...new Map(references.map((reference) => [egressKey(reference), reference])).values()];
}

function optIn(key: string, value: string): readonly EgressReference[] {
  const namespace = key.slice(CLIENT_ANNOTATION_PREFIX.length);
  const names = value.split(",").map((name) => name.trim());
  if (NAME.test(namespace) && names.every((name) => NAME.test(name))) {
    return names.map((name) => ({ namespace, name }));
  }
  throw new ClientError({
    reason: "annotation-malformed",
    message: `the annotation ${key}: "${value}" does not name an Egress`,
    remedy: `write ${CLIENT_ANNOTATION_PREFIX}<namespace of the Egress>: <name>[,<name>...]`,
  });
}
