import { z } from "zod";
import type { PlacedPod } from "../bed/workload/gateways.ts";
import type { Kubectl } from "../bed/workload/kubectl.ts";

/** A pod with what it takes to break it. */
export interface RunningPod extends PlacedPod {
  readonly uid: string;
  /** As its status says: Pending, Running, Succeeded, Failed or Unknown. */
  readonly phase: string;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** As containerd names the first one. */
  readonly containerId: string;
}

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), uid: z.string(), deletionTimestamp: z.string().optional() }),
      spec: z.object({ nodeName: z.string().default("") }),
      status: z.object({
        phase: z.string(),
        podIPs: z.array(z.object({ ip: z.string() })).default([]),
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
        containerStatuses: z.array(z.object({ containerID: z.string().default("") })).default([]),
      }),
    }),
  ),
});

/** All pods that a selector finds, terminating ones as well. */
export async function podsOf(kubectl: Kubectl, namespace: string, selector: string): Promise<RunningPod[]> {
  const { items } = await kubectl.get(Pods, "pods", "-n", namespace, "-l", selector);
  return items.map(({ metadata, spec, status }) => {
    const addresses = status.podIPs.map(({ ip }) => ip);
    return {
      name: metadata.name,
      uid: metadata.uid,
      phase: status.phase,
      node: spec.nodeName,
      ipv4: addresses.find((address) => address.includes(".")) ?? "",
      ipv6: addresses.find((address) => address.includes(":")) ?? "",
      isReady: status.conditions.some((each) => each.type === "Ready" && each.status === "True"),
      isTerminating: metadata.deletionTimestamp !== undefined,
      containerId: (status.containerStatuses[0]?.containerID ?? "").replace("containerd://", ""),
    };
  });
}
