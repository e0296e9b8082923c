import type { RecordedEvent } from "@egress-nat/kube";
import type { StoredEgress } from "./egress.ts";

/** Something about a gateway that a person who looks at its Egress wants to know. */
export type GatewayEvent = Omit<RecordedEvent, "regarding">;

/** Records an event about the Egress. It neither fails nor waits. */
export type RecordGatewayEvent = (egress: StoredEgress, event: GatewayEvent) => void;
