/** What the node agent knows of Egresses and their gateways: two caches, read as one. */

import { isDeepStrictEqual } from "node:util";
import { EGRESS_LABEL, EgressSpec, EgressStatus, labelValue, ObjectHead } from "@egress-nat/crds";
import { type Endpoint, type EndpointSlice, mergeEndpoints, type Store } from "@egress-nat/kube";
import { z } from "zod";
import type { EgressReference } from "../state/record.ts";

/** The part of an Egress that the agent keeps: a pod template may be long, and is none of its business. */
export const EgressFacts = z.object({
  metadata: ObjectHead,
  spec: EgressSpec.pick({
    destinations: true,
    excludedDestinations: true,
    allowedNamespaces: true,
    originatingOnly: true,
    fouSourcePortAuto: true,
    clientStartup: true,
  }),
  status: EgressStatus.pick({
    serviceIPs: true,
    allowedNamespaces: true,
    observedGeneration: true,
  }).optional(),
});
export type EgressFacts = z.infer<typeof EgressFacts>;

/** One gateway pod. */
export type Gateway = Pick<Endpoint, "name" | "addresses" | "ready" | "serving">;

export interface EgressView {
  egress(reference: EgressReference): EgressFacts | undefined;
  gateways(reference: EgressReference): readonly Gateway[];
  hasEgressIn(namespace: string): boolean;
}

/** "namespace/name": how an Egress is named to people, and in maps. */
export function egressKey({ namespace, name }: EgressReference): string {
  return `${namespace}/${name}`;
}

/** An {@link EgressView} over two caches that reflectors fill. */
export class CachedEgressView implements EgressView {
  readonly #egresses: Store<EgressFacts>;
  readonly #endpointSlices: Store<EndpointSlice>;

  constructor(egresses: Store<EgressFacts>, endpointSlices: Store<EndpointSlice>) {
    this.#egresses = egresses;
    this.#endpointSlices = endpointSlices;
    egresses.addIndex("namespace", ({ metadata }) => [metadata.namespace]);
    endpointSlices.addIndex("egress", indexByEgress);
  }

  egress(reference: EgressReference): EgressFacts | undefined {
    return this.#egresses.get(egressKey(reference));
  }

  gateways({ namespace, name }: EgressReference): readonly Gateway[] {
    return mergeEndpoints(this.#endpointSlices.byIndex("egress", `${namespace}/${labelValue(name)}`));
  }

  hasEgressIn(namespace: string): boolean {
    return this.#egresses.byIndex("namespace", namespace).length > 0;
  }

  /** @param listener is told which Egress changed, in its spec, its status or its gateways */
  onChange(listener: (reference: EgressReference) => void): void {
    this.#egresses.onChange(({ object, previous }) => {
      // Most of its status is nothing that a client is made of.
      if (previous !== undefined && isDeepStrictEqual(factsOf(object), factsOf(previous))) return;
      const { namespace, name } = object.metadata;
      listener({ namespace, name });
    });
    this.#endpointSlices.onChange(({ object, previous }) => {
      // The label holds the name itself: an Egress's name is never longer than a label may be.
      for (const { metadata } of [object, ...(previous === undefined ? [] : [previous])]) {
        const name = metadata.labels[EGRESS_LABEL];
        if (name !== undefined) listener({ namespace: metadata.namespace, name });
      }
    });
  }
}

function factsOf({ spec, status }: EgressFacts): unknown {
  return [spec, status];
}

function indexByEgress({ metadata }: EndpointSlice): readonly string[] {
  const name = metadata.labels[EGRESS_LABEL];
  return name === undefined ? [] : [`${metadata.namespace}/${name}`];
}
