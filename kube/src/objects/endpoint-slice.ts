/** The endpoints of Services: https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/ */

import { isAddress } from "@egress-nat/addresses";
import { z } from "zod";
import { OwnerReferences } from "./owner-references.ts";
import { namespacedResource } from "./resource.ts";

export const ENDPOINT_SLICE_RESOURCE = namespacedResource(
  "discovery.k8s.io/v1",
  "endpointslices",
  "EndpointSlice",
);

const Names = z
  .array(z.object({ name: z.string() }))
  .nullish()
  .transform((names) => (names ?? []).map(({ name }) => name));

/** The part of an EndpointSlice that tells which pods serve. */
export const EndpointSlice = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    resourceVersion: z.string().optional(),
    labels: z.record(z.string(), z.string()).default({}),
    ownerReferences: OwnerReferences.default([]),
  }),
  endpoints: z
    .array(
      z.object({
        addresses: z.array(z.string()),
        conditions: z
          .object({
            ready: z.boolean().nullish(),
            serving: z.boolean().nullish(),
            terminating: z.boolean().nullish(),
          })
          .default({}),
        nodeName: z.string().nullish(),
        hints: z.object({ forNodes: Names, forZones: Names }).nullish(),
        targetRef: z.object({ name: z.string(), uid: z.string() }).partial().nullish(),
      }),
    )
    .nullish()
    .transform((endpoints) => endpoints ?? []),
});
export type EndpointSlice = z.infer<typeof EndpointSlice>;

/**
 * Whether an EndpointSlice is one that Kubernetes keeps for a Service: a label alone can be on any.
 *
 * @param service its name; and its UID, where that is known
 * @see https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#ownership
 */
export function isOfService(
  { metadata }: EndpointSlice,
  service: { readonly name: string; readonly uid: string | undefined },
): boolean {
  const owner = metadata.ownerReferences.find(({ controller }) => controller);
  return (
    owner?.apiVersion === "v1" &&
    owner.kind === "Service" &&
    owner.name === service.name &&
    (service.uid === undefined || owner.uid === service.uid)
  );
}

/** One pod behind a Service, with its addresses of all families. */
export interface Endpoint {
  /** Of the pod. */
  readonly name: string;
  /** Of its node; undefined where the slice does not say. */
  readonly nodeName: string | undefined;
  readonly addresses: readonly string[];
  readonly ready: boolean;
  /** Ready, or terminating and still able to serve. */
  readonly serving: boolean;
  readonly terminating: boolean;
  /** Whom it is meant for, where the Service asks for that (`trafficDistribution`). */
  readonly hints?: Hints;
}

interface Hints {
  readonly forNodes: readonly string[];
  readonly forZones: readonly string[];
}

/**
 * The pods behind all EndpointSlices of one Service: a pod stands in one slice per family, and while a slice is being
 * moved perhaps in two.
 */
export function mergeEndpoints(slices: readonly EndpointSlice[]): readonly Endpoint[] {
  const endpoints = new Map<string, Endpoint>();
  for (const endpoint of slices.flatMap(({ endpoints }) => endpoints)) {
    const { conditions, nodeName, hints, targetRef } = endpoint;
    // Those of a slice of type FQDN are names.
    const addresses = endpoint.addresses.filter(isAddress);
    if (addresses.length === 0) continue;
    // A condition that is not known counts as true, and serving as ready: discovery.k8s.io/v1 EndpointConditions.
    const ready = conditions.ready ?? true;
    const serving = conditions.serving ?? ready;
    const id = targetRef?.uid ?? addresses.join();
    const known = endpoints.get(id);
    const meantFor = [known?.hints, hints].filter((each) => each != null);
    endpoints.set(id, {
      name: targetRef?.name ?? addresses.join(),
      nodeName: nodeName ?? known?.nodeName,
      addresses: [...new Set([...(known?.addresses ?? []), ...addresses])],
      ready: ready || (known?.ready ?? false),
      serving: serving || (known?.serving ?? false),
      terminating: conditions.terminating ?? known?.terminating ?? false,
      ...(meantFor.length > 0 && {
        hints: {
          forNodes: meantFor.flatMap(({ forNodes }) => forNodes),
          forZones: meantFor.flatMap(({ forZones }) => forZones),
        },
      }),
    });
  }
  return [...endpoints.values()];
}
