export interface EgressReference {
  readonly namespace: string;
  readonly name: string;
}

/** What a client's network namespace needs of an Egress when the Egress itself is gone: what to guard. */
export interface RecordedEgress extends EgressReference {
  readonly destinations: readonly string[];
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

/** An address that gateways of these Egresses may still trust: given to no pod until they have let go of it. */
export interface Tombstone {
  readonly address: string;
  readonly egresses: readonly EgressReference[];
}
