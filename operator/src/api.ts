/** What the operator reads and writes in the API, for its reconcilers. */

import { EGRESS_RESOURCE, SLICE_RESOURCE } from "@egress-nat/crds";
import {
  apiVersion,
  type EventRecorder,
  hasCode,
  NODE_RESOURCE,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import type { Caches } from "./caches.ts";
import { CHILD_RESOURCES, type ChildKind } from "./egress/children/index.ts";
import { FIELD_MANAGER } from "./egress/field-manager.ts";
import { type ObservedChildren, parseChild } from "./egress/observed.ts";
import type { EgressWorld } from "./egress/reconcile.ts";
import { NodeHead, SliceHead, type SliceWorld } from "./slices/orphans.ts";

type ChildClients = { readonly [K in ChildKind]: ResourceClient<NonNullable<ObservedChildren[K]>> };

export function egressWorld(
  transport: Transport,
  caches: Caches,
  events: EventRecorder,
  writeStatus: EgressWorld["writeStatus"],
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
    egress: (key) => caches.egresses.store.get(key),
    children: (key) => caches.childrenOf(key),
    gateways: (key) => caches.gatewaysOf(key),
    clients: (key) => caches.clientsOf(key),
    namespaces: () => caches.namespaces.store.list(),
    read: (child, egress, signal) => found(clients[child].get(egress.metadata, { signal })),
    apply: (child, manifest, force, signal) =>
      clients[child].apply(manifest, { fieldManager: FIELD_MANAGER, force, signal }),
    delete: (child, { metadata }, signal) =>
      gone(clients[child].delete(metadata, { preconditions: { uid: metadata.uid }, signal })),
    writeStatus,
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
  return {
    slice: (key) => caches.slices.store.get(key),
    knowsNode: (name) => caches.nodes.store.get(name) !== undefined,
    hasNode: async (name, signal) => (await found(nodes.get({ name }, { signal }))) !== undefined,
    deleteSlice: ({ metadata }, signal) =>
      gone(slices.delete(metadata, { preconditions: { uid: metadata.uid }, signal })),
  };
}

function childClient<K extends ChildKind>(
  transport: Transport,
  child: K,
): ResourceClient<NonNullable<ObservedChildren[K]>> {
  const parse = parseChild[child] as (raw: unknown) => NonNullable<ObservedChildren[K]>;
  return new ResourceClient(transport, CHILD_RESOURCES[child], parse);
}

/** The object, or undefined where there is none. */
async function found<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (hasCode(error, "NotFound")) return undefined;
    throw error;
  }
}

/** Gone already, or replaced by another of that name: either way it is not there any more. */
async function gone(deleting: Promise<void>): Promise<void> {
  try {
    await deleting;
  } catch (error) {
    if (!hasCode(error, "NotFound") && !hasCode(error, "Conflict")) throw error;
  }
}
