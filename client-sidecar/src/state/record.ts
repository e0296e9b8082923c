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

/** One client on this node. */
export interface ClientRecord {
  readonly containerId: string;
  readonly netns: string;
  readonly ifname: string;
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
  /** Of the client; absent where only a slice tells that there was one. */
  readonly containerId?: string;
  readonly egresses: readonly EgressReference[];
}
