import type { EventRecorder, RecordedEvent } from "@egress-nat/kube";

/** Something that a person who looks at a node wants to know. */
export type NodeEvent = Omit<RecordedEvent, "regarding" | "action">;

export type RecordNodeEvent = (event: NodeEvent) => void;

/**
 * Events instead of a condition of the Node: agents write events anyway, and the right to patch nodes/status is that to
 * take any node out of service.
 */
export function nodeEvents(recorder: Pick<EventRecorder, "record">, nodeName: string): RecordNodeEvent {
  // As kubelet's own: `kubectl describe node` looks for the name in the place of the UID, which only a reader of nodes knows.
  const regarding = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
  return (event) => recorder.record({ regarding, action: "InstallPlugin", ...event });
}
