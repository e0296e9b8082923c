import { CLIENT_ANNOTATION_PREFIX } from "@egress-nat/crds";
import type { PodReference } from "../cni/invocation.ts";
import type { RecordPodEvent } from "./pod.ts";

/**
 * Says on a pod that some of its annotations look as if they were meant for this product, and have no effect.
 *
 * @param keys of those annotations
 */
export function sayLookalikes(recordEvent: RecordPodEvent, pod: PodReference, keys: readonly string[]): void {
  if (keys.length === 0) return;
  const message =
    `an annotation that looks like one of egress-nat, and has no effect: ${keys.join(", ")}; ` +
    `write ${CLIENT_ANNOTATION_PREFIX}<namespace of the Egress>: <name>[,<name>...], and create the pod again`;
  recordEvent(pod, { type: "Warning", reason: "AnnotationNotUnderstood", message });
}
