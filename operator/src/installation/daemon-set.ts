/** How far a DaemonSet is. */

import { namespacedResource, ResourceClient, type Transport } from "@egress-nat/kube";
import { z } from "zod";

export const DAEMON_SET = namespacedResource("apps/v1", "daemonsets", "DaemonSet");

const DaemonSet = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string(), generation: z.int() }),
  status: z
    .object({
      observedGeneration: z.int().default(0),
      desiredNumberScheduled: z.int().default(0),
      updatedNumberScheduled: z.int().default(0),
      numberReady: z.int().default(0),
    })
    .prefault({}),
});
export type DaemonSet = z.infer<typeof DaemonSet>;

/** @throws KubeError NotFound when there is none of that name */
export async function daemonSetProgress(
  transport: Transport,
  reference: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<ReturnType<typeof progressOf>> {
  const client = new ResourceClient(transport, DAEMON_SET, (raw) => DaemonSet.parse(raw));
  return progressOf(await client.get(reference, { signal }));
}

/** On how many nodes a DaemonSet is ready, of how many. One that no controller has looked at yet says zero of zero. */
export function progressOf({ metadata, status }: DaemonSet) {
  const { observedGeneration, desiredNumberScheduled: nodes, updatedNumberScheduled, numberReady } = status;
  const ready = Math.min(updatedNumberScheduled, numberReady);
  return { ready, nodes, isDone: observedGeneration >= metadata.generation && ready >= nodes };
}
