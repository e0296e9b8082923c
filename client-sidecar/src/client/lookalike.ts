/** Annotations that look as if they were meant for this product, and are none that it understands. */

import { API_GROUP, CLIENT_ANNOTATION_PREFIX, GATEWAY_ANNOTATION } from "@egress-nat/crds/names";
import type { PodReference, RecordPodEvent } from "./pod.ts";

/** In more parts than it may have slips: one of them is whole in whatever is to be compared letter by letter. */
const PARTS = ["egres", "s.coil", ".cyboz", "u.com"] as const;

const DOMAIN = PARTS.join("");

/** More of them make another word of it. */
const MAX_SLIPS = PARTS.length - 1;

/** Coil's own, read from namespaces. */
const POOL_ANNOTATION = `${API_GROUP}/pool`;

const KNOWN: readonly string[] = [GATEWAY_ANNOTATION, POOL_ANNOTATION];

/**
 * Whether the key of an annotation is a misspelt one of ours: its domain is ours but for a few letters, or with another
 * end or beginning, or without the namespace that follows. The chart's warning policy says much the same in CEL.
 */
export function isLookalike(key: string): boolean {
  if (key.startsWith(CLIENT_ANNOTATION_PREFIX) || KNOWN.includes(key)) return false;
  const [domain = ""] = key.toLowerCase().split("/");
  return (
    domain.endsWith(API_GROUP) ||
    /^egress.*(coil|cybozu)/.test(domain) ||
    (PARTS.some((part) => domain.includes(part)) && distance(domain, DOMAIN) <= MAX_SLIPS)
  );
}

/** How many letters have to be put in, taken out or changed: Levenshtein's distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const changed = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** Says on a pod that annotations of these keys look as if they were meant for this product, and have no effect. */
export function sayLookalikes(recordEvent: RecordPodEvent, pod: PodReference, keys: readonly string[]): void {
  if (keys.length === 0) return;
  const message =
    `an annotation that looks like one of egress-nat, and has no effect: ${keys.join(", ")}; ` +
    `write ${CLIENT_ANNOTATION_PREFIX}<namespace of the Egress>: <name>[,<name>...], and create the pod again`;
  recordEvent(pod, { type: "Warning", reason: "AnnotationNotUnderstood", message });
}
