/** Pods, as the container runtime names them, and what people are told of them. */

export interface PodReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}

/** Something that a person who looks at a pod wants to know. */
export interface PodEvent {
  readonly type: "Normal" | "Warning";
  /** One CamelCase word. */
  readonly reason: string;
  readonly message: string;
}

/** Tells the API about a pod. */
export type RecordPodEvent = (pod: PodReference, event: PodEvent) => void;
