/** What the agent watches: Egresses, the EndpointSlices of their gateways, and its own node's client slices. Never pods. */

import {
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  EgressClientSlice,
  labelValue,
  NODE_LABEL,
  SLICE_RESOURCE,
  sliceName,
} from "@egress-nat/crds";
import {
  ENDPOINT_SLICE_RESOURCE,
  EndpointSlice,
  type KubeObject,
  Reflector,
  type Resource,
  Store,
  type Transport,
} from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { z } from "zod";
import type { EgressReference } from "../state/record.ts";
import { CachedEgressView, EgressFacts } from "./egress-view.ts";

export interface ClusterCacheOptions {
  readonly transport: Transport;
  readonly nodeName: string;
  readonly logger: Logger;
}

interface Watch {
  run(signal: AbortSignal): Promise<void>;
  whenSynced(signal: AbortSignal): Promise<void>;
}

export class ClusterCache {
  readonly view: CachedEgressView;
  readonly slices = new Store<EgressClientSlice>();
  readonly #options: ClusterCacheOptions;
  readonly #watches: readonly Watch[];

  constructor(options: ClusterCacheOptions) {
    this.#options = options;
    const egresses = new Store<EgressFacts>();
    const endpointSlices = new Store<EndpointSlice>();
    this.view = new CachedEgressView(egresses, endpointSlices);
    const ownNode = `${NODE_LABEL}=${labelValue(options.nodeName)}`;
    this.#watches = [
      this.#watch(EGRESS_RESOURCE, EgressFacts, egresses),
      this.#watch(ENDPOINT_SLICE_RESOURCE, EndpointSlice, endpointSlices, EGRESS_LABEL),
      this.#watch(SLICE_RESOURCE, EgressClientSlice, this.slices, ownNode),
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

  /** @throws the signal's reason */
  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.whenSynced(signal)));
  }

  #watch<T extends KubeObject>(
    resource: Resource,
    schema: z.ZodType<T>,
    store: Store<T>,
    labelSelector?: string,
  ): Watch {
    const { transport, logger } = this.#options;
    const parse = (raw: unknown) => schema.parse(raw);
    return new Reflector({ transport, resource, store, logger, labelSelector, parse });
  }
}
