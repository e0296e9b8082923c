/** What the node agent knows of Egresses and their gateways: two caches, read as one. */

import { EGRESS_LABEL, EgressSpec, EgressStatus, labelValue, ObjectMeta } from "@egress-nat/crds";
import type { Store } from "@egress-nat/kube";
import { z } from "zod";
import type { EgressReference } from "../state/record.ts";

/** The part of an Egress that the agent keeps: a pod template may be long, and is none of its business. */
export const EgressFacts = z.object({
  metadata: ObjectMeta.pick({ namespace: true, name: true, uid: true, resourceVersion: true }),
  spec: EgressSpec.pick({
    destinations: true,
    excludedDestinations: true,
    originatingOnly: true,
    fouSourcePortAuto: true,
    clientStartup: true,
  }),
  status: EgressStatus.pick({ serviceIPs: true }).optional(),
});
export type EgressFacts = z.infer<typeof EgressFacts>;

/** The part of an EndpointSlice that the agent keeps: https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/. */
export const EndpointSlice = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    resourceVersion: z.string().optional(),
    labels: z.record(z.string(), z.string()).default({}),
  }),
  endpoints: z
    .array(
      z.object({
        addresses: z.array(z.string()),
        conditions: z
          .object({
            ready: z.boolean().nullish(),
            serving: z.boolean().nullish(),
          })
          .default({}),
        nodeName: z.string().nullish(),
        targetRef: z.object({ name: z.string(), uid: z.string() }).partial().nullish(),
      }),
    )
    .nullish()
    .transform((endpoints) => endpoints ?? []),
});
export type EndpointSlice = z.infer<typeof EndpointSlice>;

export const ENDPOINT_SLICE_RESOURCE = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
} as const;

/** One gateway pod, with its addresses of all families. */
export interface Gateway {
  /** Of the pod. */
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ready: boolean;
  /** Ready, or terminating and still able to serve. */
  readonly serving: boolean;
}

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
    this.#egresses.onChange(({ object }) => {
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

/**
 * The gateways behind all EndpointSlices of one Service: a pod stands in one slice per family, and while a slice is
 * being moved perhaps in two.
 */
export function mergeEndpoints(slices: readonly EndpointSlice[]): readonly Gateway[] {
  const gateways = new Map<string, Gateway>();
  for (const { addresses, conditions, targetRef } of slices.flatMap(({ endpoints }) => endpoints)) {
    // A condition that is not known counts as true, and serving as ready: discovery.k8s.io/v1 EndpointConditions.
    const ready = conditions.ready ?? true;
    const serving = conditions.serving ?? ready;
    const id = targetRef?.uid ?? addresses.join();
    const known = gateways.get(id);
    gateways.set(id, {
      name: targetRef?.name ?? addresses.join(),
      addresses: [...new Set([...(known?.addresses ?? []), ...addresses])],
      ready: ready || (known?.ready ?? false),
      serving: serving || (known?.serving ?? false),
    });
  }
  return [...gateways.values()];
}

function indexByEgress({ metadata }: EndpointSlice): readonly string[] {
  const name = metadata.labels[EGRESS_LABEL];
  return name === undefined ? [] : [`${metadata.namespace}/${name}`];
}
