import type { z } from "zod";
import type { ManagedFieldsEntry } from "./managed-fields.ts";
import type { OwnerReferences } from "./owner-references.ts";

/** A kind of object in the API. */
export interface Resource {
  /** "group/version", or "v1" for the core group: what stands in an object's apiVersion. */
  readonly apiVersion: string;
  /** As its URL names it. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export function namespacedResource(apiVersion: string, plural: string, kind: string): Resource {
  return { apiVersion, plural, kind, namespaced: true };
}

/** As {@link namespacedResource}, of the whole cluster. */
export function clusterResource(apiVersion: string, plural: string, kind: string): Resource {
  return { apiVersion, plural, kind, namespaced: false };
}

type OwnerReference = z.infer<typeof OwnerReferences>[number] & { blockOwnerDeletion?: boolean | undefined };

export interface ObjectMeta {
  name: string;
  namespace?: string | undefined;
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  generation?: number | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  finalizers?: string[] | undefined;
  ownerReferences?: OwnerReference[] | undefined;
  managedFields?: ManagedFieldsEntry[] | undefined;
  /** RFC 3339, whole seconds. */
  creationTimestamp?: string | undefined;
  /** RFC 3339, whole seconds; set while finalizers hold the object. */
  deletionTimestamp?: string | undefined;
}

/** What all objects of the API have in common. */
export interface KubeObject {
  apiVersion?: string | undefined;
  kind?: string | undefined;
  metadata: ObjectMeta;
}

export interface ResourceLocation {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** "namespace/name", or "name" for an object of the whole cluster: what caches and queues know an object by. */
export function objectKey(object: { metadata: { name: string; namespace?: string | undefined } }): string {
  const { namespace, name } = object.metadata;
  return namespace ? `${namespace}/${name}` : name;
}

export const NODE_RESOURCE = clusterResource("v1", "nodes", "Node");
export const NAMESPACE_RESOURCE = clusterResource("v1", "namespaces", "Namespace");
export const POD_RESOURCE = namespacedResource("v1", "pods", "Pod");
export const CONFIG_MAP_RESOURCE = namespacedResource("v1", "configmaps", "ConfigMap");

export const LEASE_RESOURCE = namespacedResource("coordination.k8s.io/v1", "leases", "Lease");

/**
 * The URL path of an object, or of a collection where no name is given.
 *
 * A namespaced resource without a namespace is the collection of all namespaces.
 *
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris
 */
export function resourcePath(resource: Resource, location: ResourceLocation = {}): string {
  const { namespace, name, subresource } = location;
  if (name !== undefined && resource.namespaced && !namespace) {
    throw new TypeError(`${resource.kind} ${name} lives in a namespace: give its namespace`);
  }
  const { apiVersion } = resource;
  const parts = [apiVersion.includes("/") ? "apis" : "api", ...apiVersion.split("/")];
  if (resource.namespaced && namespace) parts.push("namespaces", namespace);
  parts.push(resource.plural);
  if (name !== undefined) parts.push(name);
  if (subresource !== undefined) parts.push(subresource);
  return `/${parts.map(encodeURIComponent).join("/")}`;
}
