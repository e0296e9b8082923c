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
  CONFIG_MAP_RESOURCE,
  ENDPOINT_SLICE_RESOURCE,
  EndpointSlice,
  type KubeObject,
  Reflector,
  type ReflectorOptions,
  type Resource,
  Store,
  type Transport,
} from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { EgressReference } from "../state/record.ts";
import { CachedEgressView, parseStoredEgress, type StoredEgress } from "./egress-view.ts";

export interface ClusterCacheOptions {
  readonly transport: Transport;
  readonly nodeName: string;
  /** Namespace of the product: the operator publishes the cluster's networks there. */
  readonly namespace: string;
  readonly logger: Logger;
}

type Selection = Pick<ReflectorOptions<KubeObject>, "namespace" | "labelSelector" | "fieldSelector">;

type Watch = Pick<Reflector<KubeObject>, "run" | "state" | "whenSynced">;

export class ClusterCache {
  readonly view: CachedEgressView;
  readonly slices = new Store<EgressClientSlice>();
  readonly #options: ClusterCacheOptions;
  readonly #watches: readonly Watch[];
  readonly #rangesKnown = Promise.withResolvers<void>();

  constructor(options: ClusterCacheOptions) {
    this.#options = options;
    const egresses = new Store<StoredEgress>();
    const endpointSlices = new Store<EndpointSlice>();
    const clusterRanges = new Store<ClusterRanges>();
    this.view = new CachedEgressView({ egresses, endpointSlices, clusterRanges });
    clusterRanges.onChange(() => {
      if (this.view.knowsClusterRanges) this.#rangesKnown.resolve();
    });
    const ownNode = `${NODE_LABEL}=${labelValue(options.nodeName)}`;
    this.#watches = [
      this.#watch(EGRESS_RESOURCE, parseStoredEgress, egresses),
      this.#watch(ENDPOINT_SLICE_RESOURCE, (raw) => EndpointSlice.parse(raw), endpointSlices, {
        labelSelector: EGRESS_LABEL,
      }),
      this.#watch(SLICE_RESOURCE, (raw) => EgressClientSlice.parse(raw), this.slices, {
        labelSelector: ownNode,
      }),
      this.#watch(CONFIG_MAP_RESOURCE, (raw) => ClusterRanges.parse(raw), clusterRanges, {
        namespace: options.namespace,
        fieldSelector: `metadata.name=${CLUSTER_RANGES_CONFIG_MAP}`,
      }),
    ];
  }

  /** This node's slice of an Egress, as last seen. */
  slice({ namespace, name }: EgressReference): EgressClientSlice | undefined {
    return this.slices.get(`${namespace}/${sliceName(name, this.#options.nodeName)}`);
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.run(signal)));
  }

  /** When it has lists of all, and the operator has published the cluster's networks. @throws the signal's reason */
  async whenKnown(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.whenSynced(signal)));
    await abortable(this.#rangesKnown.promise, signal);
  }

  /** What it still waits for, in words. */
  get missing(): readonly string[] {
    if (!this.#watches.every(({ state }) => state.synced)) {
      return ["Egresses and gateways have not been read from the Kubernetes API yet"];
    }
    const name = `${this.#options.namespace}/${CLUSTER_RANGES_CONFIG_MAP}`;
    return this.view.knowsClusterRanges
      ? []
      : [
          `the operator has not yet published the networks of the cluster in ConfigMap ${name}: check that it runs`,
        ];
  }

  #watch<T extends KubeObject>(
    resource: Resource,
    parse: (raw: unknown) => T,
    store: Store<T>,
    selection: Selection = {},
  ): Watch {
    const { transport, logger } = this.#options;
    return new Reflector({ transport, resource, store, logger, parse, ...selection });
  }
}
