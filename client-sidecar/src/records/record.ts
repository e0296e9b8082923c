import type { Attachment } from "./record-id.ts";

export interface EgressReference {
  readonly namespace: string;
  readonly name: string;
}

/** What a client's network namespace needs of an Egress when the Egress itself is gone: what to guard. */
export interface RecordedEgress extends EgressReference {
  readonly destinations: readonly string[];
  readonly excludedDestinations: readonly string[];
  readonly originatingOnly: boolean;
  readonly fouSourcePortAuto: boolean;
}

/** One client on this node; a pod that asks for an Egress is one by each of the networks that the plugin is chained in. */
export interface ClientRecord extends Attachment {
  readonly netns: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Canonical. */
  readonly addresses: readonly string[];
  /** RFC 3339. */
  readonly addedAt: string;
  /** In the annotation's order. */
  readonly egresses: readonly RecordedEgress[];
}

/** An address that gateways of these Egresses may trust: given to no other pod until they have let go of it. */
export interface TrustedAddress {
  readonly address: string;
  /** Id of the client's record; absent where only a slice tells that there was a client. */
  readonly record?: string;
  readonly egresses: readonly EgressReference[];
}
