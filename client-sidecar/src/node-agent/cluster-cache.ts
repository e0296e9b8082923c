/**
 * What the agent watches: Egresses, the EndpointSlices of their gateways, the cluster's networks, and its own node's
 * client slices. Never pods.
 */

import {
  CLUSTER_RANGES_CONFIG_MAP,
  ClusterRanges,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  EgressClientSlice,
  labelValue,
  NODE_LABEL,
  SLICE_RESOURCE,
  sliceName,
} from "@egress-nat/crds";
import {
  abortable,
  Cache,
  CacheSet,
  CONFIG_MAP_RESOURCE,
  ENDPOINT_SLICE_RESOURCE,
  EndpointSlice,
  type ReflectorEvent,
  type Store,
  type Transport,
} from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { CachedEgressView, type ViewPoint } from "../gateways/cached-view.ts";
import { parseStoredEgress } from "../gateways/view.ts";
import type { EgressReference } from "../records/schema.ts";

export interface ClusterCacheOptions {
  readonly transport: Transport;
  readonly nodeName: string;
  /** Of this node; absent where it has none. */
  readonly zone?: string | undefined;
  /** Namespace of the product: the operator publishes the cluster's networks there. */
  readonly namespace: string;
  readonly logger: Logger;
}

export class ClusterCache {
  readonly view: CachedEgressView;
  readonly slices: Store<EgressClientSlice>;
  readonly #options: ClusterCacheOptions;
  readonly #caches: CacheSet;
  readonly #rangesKnown = Promise.withResolvers<void>();
  readonly #sliceListeners: ((event: ReflectorEvent) => void)[] = [];

  /** @param pulse what is heard of an address of a gateway */
  constructor(options: ClusterCacheOptions, pulse: ViewPoint["pulse"]) {
    this.#options = options;
    const { transport, logger, nodeName, zone, namespace } = options;
    const api = { transport, logger };
    const egresses = new Cache({ ...api, resource: EGRESS_RESOURCE, parse: parseStoredEgress });
    const endpointSlices = new Cache({
      ...api,
      resource: ENDPOINT_SLICE_RESOURCE,
      parse: (raw) => EndpointSlice.parse(raw),
      labelSelector: EGRESS_LABEL,
    });
    const slices = new Cache({
      ...api,
      resource: SLICE_RESOURCE,
      parse: (raw) => EgressClientSlice.parse(raw),
      labelSelector: `${NODE_LABEL}=${labelValue(nodeName)}`,
      onEvent: (event) => {
        for (const listener of this.#sliceListeners) listener(event);
      },
    });
    const clusterRanges = new Cache({
      ...api,
      resource: CONFIG_MAP_RESOURCE,
      parse: (raw) => ClusterRanges.parse(raw),
      namespace,
      fieldSelector: `metadata.name=${CLUSTER_RANGES_CONFIG_MAP}`,
    });
    this.slices = slices.store;
    this.#caches = new CacheSet([egresses, endpointSlices, slices, clusterRanges]);
    const stores = {
      egresses: egresses.store,
      endpointSlices: endpointSlices.store,
      clusterRanges: clusterRanges.store,
    };
    this.view = new CachedEgressView(stores, { place: { nodeName, zone }, pulse });
    clusterRanges.onChange(() => {
      if (this.view.knowsClusterRanges) this.#rangesKnown.resolve();
    });
  }

  /** This node's slice of an Egress, as last seen. */
  slice({ namespace, name }: EgressReference): EgressClientSlice | undefined {
    return this.slices.get(`${namespace}/${sliceName(name, this.#options.nodeName)}`);
  }

  /** @param listener is told what happens to the list and the watch of the slices */
  onSliceEvent(listener: (event: ReflectorEvent) => void): void {
    this.#sliceListeners.push(listener);
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#caches.run(signal);
  }

  /** When it has lists of all, and the operator has published the cluster's networks. @throws the signal's reason */
  async whenKnown(signal: AbortSignal): Promise<void> {
    await this.#caches.whenSynced(signal);
    await abortable(this.#rangesKnown.promise, signal);
  }

  /** What it still waits for, in words. */
  get missing(): readonly string[] {
    if (this.#caches.unsynced.length > 0) {
      return ["Egresses and gateways have not been read from the Kubernetes API yet"];
    }
    const name = `${this.#options.namespace}/${CLUSTER_RANGES_CONFIG_MAP}`;
    return this.view.knowsClusterRanges
      ? []
      : [
          `the operator has not yet published the networks of the cluster in ConfigMap ${name}: check that it runs`,
        ];
  }
}
