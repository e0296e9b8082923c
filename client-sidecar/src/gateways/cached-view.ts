/** The view that a program has which watches the Kubernetes API. */

import { isDeepStrictEqual } from "node:util";
import { type ClusterRanges, EGRESS_LABEL, egressKeys, isInvalid, labelValue } from "@egress-nat/crds";
import {
  type Endpoint,
  type EndpointSlice,
  isOfService,
  mergeEndpoints,
  type Place,
  type Store,
} from "@egress-nat/kube";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import type { Pulse } from "./pulse.ts";
import { VanishedGateways } from "./vanished.ts";
import type { EgressView, StoredEgress } from "./view.ts";

export interface ViewedStores {
  readonly egresses: Store<StoredEgress>;
  readonly endpointSlices: Store<EndpointSlice>;
  readonly clusterRanges: Store<ClusterRanges>;
}

export interface ViewPoint {
  readonly place: Place;
  readonly pulse: (address: string) => Pulse;
}

export class CachedEgressView implements EgressView {
  readonly #stores: ViewedStores;
  readonly #viewPoint: ViewPoint;
  readonly #vanished = new VanishedGateways();
  readonly #listeners: ((reference: EgressReference) => void)[] = [];
  /** Those of a ConfigMap that was deleted, or is not understood any more, hold on. */
  #lastKnownRanges: readonly string[] | undefined;

  constructor(stores: ViewedStores, viewPoint: ViewPoint) {
    const { egresses, endpointSlices, clusterRanges } = stores;
    this.#stores = stores;
    this.#viewPoint = viewPoint;
    clusterRanges.onChange(({ type, object }) => {
      if (type !== "deleted") this.#lastKnownRanges = object.data?.ranges ?? this.#lastKnownRanges;
    });
    egresses.addIndex("namespace", ({ metadata }) => [metadata.namespace]);
    endpointSlices.addIndex("egress", egressKeys);
    egresses.onChange(({ object, previous }) => {
      if (previous === undefined || !isDeepStrictEqual(withoutCounts(object), withoutCounts(previous))) {
        this.#follow(referenceTo(object, object.metadata.name));
      }
    });
    endpointSlices.onChange(({ object, previous = object }) => {
      // The label holds the name itself: an Egress's name is never longer than a label may be.
      const names = new Set([object, previous].map(({ metadata }) => metadata.labels[EGRESS_LABEL]));
      for (const name of names) if (name !== undefined) this.#follow(referenceTo(object, name));
    });
  }

  egress(reference: EgressReference): StoredEgress | undefined {
    return this.#stores.egresses.get(egressKey(reference));
  }

  gateways(reference: EgressReference): readonly Endpoint[] {
    return mergeEndpoints(this.#endpointSlicesOf(reference));
  }

  vanishedGateways(reference: EgressReference): readonly Endpoint[] {
    return this.#vanished.of(reference);
  }

  pulse(address: string): Pulse {
    return this.#viewPoint.pulse(address);
  }

  knowsGateways(reference: EgressReference): boolean {
    // A Service without pods has an EndpointSlice that is empty. That of an Egress that is gone goes with it.
    return this.egress(reference) === undefined || this.#endpointSlicesOf(reference).length > 0;
  }

  hasEgressIn(namespace: string): boolean {
    return this.#stores.egresses.byIndex("namespace", namespace).length > 0;
  }

  get place(): Place {
    return this.#viewPoint.place;
  }

  get invalidEgresses(): number {
    return this.#stores.egresses.list().filter(isInvalid).length;
  }

  get knowsClusterRanges(): boolean {
    return this.#lastKnownRanges !== undefined;
  }

  get clusterRanges(): readonly string[] {
    if (this.#lastKnownRanges === undefined) throw new TypeError("the cluster's networks are not known yet");
    return this.#lastKnownRanges;
  }

  onClusterRanges(listener: () => void): void {
    this.#stores.clusterRanges.onChange(listener);
  }

  /** @param listener is told which Egress changed, in its spec, its status or its gateways */
  onChange(listener: (reference: EgressReference) => void): void {
    this.#listeners.push(listener);
  }

  #follow(reference: EgressReference): void {
    const tell = () => {
      for (const listener of this.#listeners) listener(reference);
    };
    this.#vanished.note(reference, this.gateways(reference), tell);
    tell();
  }

  #endpointSlicesOf({ namespace, name }: EgressReference): readonly EndpointSlice[] {
    const egress = this.egress({ namespace, name });
    const { serviceUID: uid, serviceIPs = [] } = egress?.status ?? {};
    // An Egress whose Service is still to be made has no gateways, although a Service of somebody else may have its name.
    if (egress !== undefined && uid === undefined && serviceIPs.length === 0) return [];
    // An operator that is older than this agent does not say which Service it is, but its name.
    const slices = this.#stores.endpointSlices.byIndex("egress", `${namespace}/${labelValue(name)}`);
    return slices.filter((slice) => isOfService(slice, { name, uid }));
  }
}

function referenceTo({ metadata }: StoredEgress | EndpointSlice, name: string): EgressReference {
  return { namespace: metadata.namespace, name };
}

/** Each pod that comes or goes anywhere changes what the status counts, and nothing for the clients here. */
function withoutCounts({ metadata, status, ...rest }: StoredEgress) {
  const { uid, generation } = metadata;
  return { ...rest, uid, generation, status: { ...status, clients: undefined, gateways: undefined } };
}
