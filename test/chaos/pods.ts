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
  /** How its program ended, with what it printed last if it failed; empty while it has not. */
  readonly end: { readonly reason: string; readonly message: string };
}

const End = z.object({ reason: z.string().default(""), message: z.string().default("") });
const ContainerStatus = z.object({
  containerID: z.string().default(""),
  state: z.object({ terminated: End.optional() }).default({}),
});

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), uid: z.string(), deletionTimestamp: z.string().optional() }),
      spec: z.object({ nodeName: z.string().default("") }),
      status: z.object({
        phase: z.string(),
        podIPs: z.array(z.object({ ip: z.string() })).default([]),
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
        containerStatuses: z.array(ContainerStatus).default([]),
      }),
    }),
  ),
});

/** All pods that a selector finds, terminating ones as well. */
export async function podsOf(kubectl: Kubectl, namespace: string, selector: string): Promise<RunningPod[]> {
  const { items } = await kubectl.get(Pods, "pods", "-n", namespace, "-l", selector);
  return items.map(({ metadata, spec, status }) => {
    const addresses = status.podIPs.map(({ ip }) => ip);
    const [container] = status.containerStatuses;
    return {
      name: metadata.name,
      uid: metadata.uid,
      phase: status.phase,
      node: spec.nodeName,
      ipv4: addresses.find((address) => address.includes(".")) ?? "",
      ipv6: addresses.find((address) => address.includes(":")) ?? "",
      isReady: status.conditions.some((each) => each.type === "Ready" && each.status === "True"),
      isTerminating: metadata.deletionTimestamp !== undefined,
      containerId: (container?.containerID ?? "").replace("containerd://", ""),
      end: container?.state.terminated ?? { reason: "", message: "" },
    };
  });
}
