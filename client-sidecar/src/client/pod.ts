import type { PodReference } from "../cni/invocation.ts";

/** Something that a person who looks at a pod wants to know. */
export interface PodEvent {
  readonly type: "Normal" | "Warning";
  /** One CamelCase word. */
  readonly reason: string;
  readonly message: string;
}

/** Tells the API about a pod. */
export type RecordPodEvent = (pod: PodReference, event: PodEvent) => void;
