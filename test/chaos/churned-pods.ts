/** What has become of the pods of churn. */

import type { RunningPod } from "./pods.ts";

/**
 * Whether pods have come and gone for long enough: until an address was used again, because else nothing is measured. Nodes without
 * processor time take minutes to start one pod.
 *
 * @param pods those that came to their ends, in that order
 * @param lastedMs for how long they have come and gone, in milliseconds
 */
export function haveComeAndGone(
  pods: readonly RunningPod[],
  lastedMs: number,
  { forMs, atMostMs }: { readonly forMs: number; readonly atMostMs: number },
): boolean {
  return lastedMs >= atMostMs || (lastedMs >= forMs && successorsOfVisitors(pods).length > 0);
}

/** Clients that were served or refused: one is neither if its node could not start its program (runc failed), because it never asked. */
export function clientsAmong(pods: readonly RunningPod[]): readonly RunningPod[] {
  return pods.filter(({ name, end }) => name.startsWith("visitor") && end.reason !== "StartError");
}

/** Intruders that have done what they came for with the address of a client that had gone before. */
export function successorsOfVisitors(pods: readonly RunningPod[]): readonly RunningPod[] {
  const former = new Set<string>();
  const successors: RunningPod[] = [];
  for (const pod of pods) {
    if (pod.name.startsWith("visitor")) former.add(pod.ipv4);
    else if (pod.phase === "Succeeded" && former.has(pod.ipv4)) successors.push(pod);
  }
  return successors;
}
