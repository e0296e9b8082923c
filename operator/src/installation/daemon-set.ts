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

/** On how many nodes a DaemonSet is ready, of how many. */
export interface Progress {
  readonly ready: number;
  readonly nodes: number;
  readonly isDone: boolean;
}

/** @throws KubeError NotFound when there is none of that name */
export async function daemonSetProgress(
  transport: Transport,
  reference: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<Progress> {
  const client = new ResourceClient(transport, DAEMON_SET, (raw) => DaemonSet.parse(raw));
  return progressOf(await client.get(reference, { signal }));
}

/** A DaemonSet that no controller has looked at yet says zero of zero. */
export function progressOf({ metadata, status }: DaemonSet): Progress {
  const { observedGeneration, desiredNumberScheduled: nodes, updatedNumberScheduled, numberReady } = status;
  const ready = Math.min(updatedNumberScheduled, numberReady);
  return { ready, nodes, isDone: observedGeneration >= metadata.generation && ready >= nodes };
}
