/** Pods, as the container runtime names them, and what people are told of them. */

import type { RecordedEvent } from "@egress-nat/kube";

export interface PodReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}

/** Something that a person who looks at a pod wants to know. */
export type PodEvent = Omit<RecordedEvent, "regarding" | "action">;

export type RecordPodEvent = (pod: PodReference, event: PodEvent) => void;
