/** What the operator reads and writes in the API, for its reconcilers. */

import {
  CLUSTER_RANGES_CONFIG_MAP,
  ClusterRanges,
  clusterRangesData,
  EGRESS_RESOURCE,
  ObjectHead,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import {
  apiVersion,
  CONFIG_MAP_RESOURCE,
  type EventRecorder,
  hasCode,
  NODE_RESOURCE,
  objectKey,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import { z } from "zod";
import type { Caches } from "./caches.ts";
import { clusterRanges, type RangesBySource } from "./cluster-ranges/ranges.ts";
import type { ClusterRangesWorld } from "./cluster-ranges/reconcile.ts";
import { NodeHead } from "./cluster-ranges/sources.ts";
import { CHILD_RESOURCES, type ChildKind } from "./egress/children/index.ts";
import { FIELD_MANAGER } from "./egress/field-manager.ts";
import { type ObservedChild, type ObservedChildren, parseChild } from "./egress/observed.ts";
import type { EgressWorld } from "./egress/reconcile.ts";
import { SliceHead, type SliceWorld } from "./slices/orphans.ts";

const EgressHead = z.object({ metadata: ObjectHead });

type ChildClients = { readonly [K in ChildKind]: ResourceClient<NonNullable<ObservedChildren[K]>> };

export function egressWorld(
  transport: Transport,
  caches: Caches,
  parts: Pick<EgressWorld, "gatewayReasons" | "lastingFailures" | "upgradeTurns" | "writeStatus">,
  events: EventRecorder,
): EgressWorld {
  const clients: ChildClients = {
    serviceAccount: childClient(transport, "serviceAccount"),
    role: childClient(transport, "role"),
    roleBinding: childClient(transport, "roleBinding"),
    service: childClient(transport, "service"),
    deployment: childClient(transport, "deployment"),
    disruptionBudget: childClient(transport, "disruptionBudget"),
  };

  return {
    ...parts,
    egress: (key) => caches.egresses.store.get(key),
    children: (key) => caches.childrenOf(key),
    gateways: (key) => caches.gatewaysOf(key),
    clients: (key) => caches.clientsOf(key),
    isOutside: (address) => caches.isOutside(address),
    namespaces: () => caches.namespaces.store.list(),
    read: (child, egress, signal) => found(clients[child].get(egress.metadata, { signal })),
    create: (child, manifest, signal) =>
      clients[child].createByApply(manifest, { fieldManager: FIELD_MANAGER, signal }),
    apply: async (child, manifest, seen, signal) => {
      const client = clients[child];
      const options = { fieldManager: FIELD_MANAGER, force: seen !== undefined, signal };
      const applyTo = (version: ObservedChild | undefined) => {
        const { resourceVersion } = version?.metadata ?? {};
        return client.apply({ ...manifest, metadata: { ...manifest.metadata, resourceVersion } }, options);
      };
      try {
        return await applyTo(seen);
      } catch (error) {
        // The Egress may be at fault, or what somebody has added to the child by hand.
        if (seen === undefined || !hasCode(error, "Invalid")) throw error;
        const takenOver = await client.takeOver(seen.metadata, options);
        if (takenOver === undefined) throw error;
        return applyTo(takenOver);
      }
    },
    adjust: ({ metadata }, { replicas, strategy }, signal) => {
      const { resourceVersion } = metadata;
      return clients.deployment.patch(
        metadata,
        {
          metadata: { resourceVersion },
          // What another strategy has left is invalid beside some.
          spec: { replicas, strategy: { rollingUpdate: null, ...strategy } },
        },
        { signal },
      );
    },
    delete: (child, { metadata }, signal) => {
      const { uid, resourceVersion } = metadata;
      return gone(clients[child].delete(metadata, { preconditions: { uid, resourceVersion }, signal }));
    },
    announce: ({ metadata: { name, namespace, uid } }, announcement) => {
      const regarding = {
        apiVersion: apiVersion(EGRESS_RESOURCE),
        kind: EGRESS_RESOURCE.kind,
        name,
        namespace,
        uid,
      };
      events.record({ regarding, ...announcement });
    },
    // Whole seconds, as Kubernetes writes times.
    now: () => new Date().toISOString().replace(/\.\d+Z$/, "Z"),
  };
}

export function sliceWorld(transport: Transport, caches: Caches): SliceWorld {
  const slices = new ResourceClient(transport, SLICE_RESOURCE, (raw) => SliceHead.parse(raw));
  const nodes = new ResourceClient(transport, NODE_RESOURCE, (raw) => NodeHead.parse(raw));
  const egresses = new ResourceClient(transport, EGRESS_RESOURCE, (raw) => EgressHead.parse(raw));
  return {
    slice: (key) => caches.slices.store.get(key),
    knowsNode: (name) => caches.nodes.store.get(name) !== undefined,
    hasNode: async (name, signal) => (await found(nodes.get({ name }, { signal }))) !== undefined,
    knownEgress: (egress) => caches.egresses.store.get(objectKey({ metadata: egress }))?.metadata.uid,
    // By a list of one: the operator has no right to get Egresses, because it lists and watches them all.
    readEgress: async ({ namespace, name }, signal) => {
      const { items } = await egresses.list({ namespace, fieldSelector: `metadata.name=${name}`, signal });
      return items[0]?.metadata.uid;
    },
    deleteSlice: ({ metadata }, signal) => {
      const { uid, resourceVersion } = metadata;
      return gone(slices.delete(metadata, { preconditions: { uid, resourceVersion }, signal }));
    },
  };
}

/** @param namespace where the networks are published */
export function clusterRangesWorld(
  transport: Transport,
  namespace: string,
  caches: Caches,
  sources: () => RangesBySource,
): ClusterRangesWorld {
  const configMaps = new ResourceClient(transport, CONFIG_MAP_RESOURCE, (raw) => ClusterRanges.parse(raw));
  return {
    clusterRanges: () => clusterRanges(sources()),
    published: () => caches.published(),
    publish: async (cidrs, seen, signal) => {
      const reference = { name: CLUSTER_RANGES_CONFIG_MAP, namespace };
      const data = clusterRangesData(cidrs);
      const options = { fieldManager: FIELD_MANAGER, signal };
      if (seen === undefined) {
        await configMaps.createByApply({ metadata: reference, data }, options);
        return;
      }
      const { resourceVersion } = seen.metadata;
      await configMaps.apply(
        { metadata: { ...reference, resourceVersion }, data },
        { ...options, force: true },
      );
    },
  };
}

function childClient<K extends ChildKind>(
  transport: Transport,
  child: K,
): ResourceClient<NonNullable<ObservedChildren[K]>> {
  const parse = parseChild[child] as (raw: unknown) => NonNullable<ObservedChildren[K]>;
  return new ResourceClient(transport, CHILD_RESOURCES[child], parse);
}

/** The object, or undefined if there is none. */
async function found<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (hasCode(error, "NotFound")) return undefined;
    throw error;
  }
}

/** By whomever. @throws KubeError Conflict where it is not the version that was looked at */
async function gone(deleting: Promise<void>): Promise<void> {
  try {
    await deleting;
  } catch (error) {
    if (!hasCode(error, "NotFound")) throw error;
  }
}
