import type { ManagedFieldsEntry } from "./managed-fields.ts";

/** A kind of object in the API, as its URL names it. The core group is "". */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** @param groupVersion what stands in an object's apiVersion: "apps/v1", or "v1" for the core group */
export function namespacedResource(groupVersion: string, plural: string, kind: string): Resource {
  const [version = "", group = ""] = groupVersion.split("/").toReversed();
  return { group, version, plural, kind, namespaced: true };
}

/** As {@link namespacedResource}, of the whole cluster. */
export function clusterResource(groupVersion: string, plural: string, kind: string): Resource {
  return { ...namespacedResource(groupVersion, plural, kind), namespaced: false };
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean | undefined;
  blockOwnerDeletion?: boolean | undefined;
}

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

/** "group/version", or "v1" for the core group: what stands in an object's apiVersion. */
export function apiVersion(resource: Resource): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}

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
  const parts = [
    resource.group ? "apis" : "api",
    ...(resource.group ? [resource.group] : []),
    resource.version,
  ];
  if (resource.namespaced && namespace) parts.push("namespaces", namespace);
  parts.push(resource.plural);
  if (name !== undefined) parts.push(name);
  if (subresource !== undefined) parts.push(subresource);
  return `/${parts.map(encodeURIComponent).join("/")}`;
}
