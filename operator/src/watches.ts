/** Which change is a reason to look at what: given a change of an object, which keys of which controller. */

import { isDeepStrictEqual } from "node:util";
import { egressKeys } from "@egress-nat/crds";
import {
  type Change,
  type Controller,
  type EndpointSlice,
  type KubeObject,
  objectKey,
} from "@egress-nat/kube";
import type { Caches } from "./caches.ts";
import type { NodeHead } from "./cluster-ranges/sources.ts";
import { concerns, type NamespaceHead } from "./egress/namespaces.ts";
import type { StoredEgress } from "./egress/status.ts";
import { BY_EGRESS, BY_NODE, type SliceHead } from "./slices/slice-head.ts";

/** The operator's controllers, by what their keys are of. */
export interface Controllers<C = Controller> {
  readonly egress: C;
  readonly slice: C;
  readonly clusterRanges: C;
}

/** The one key of its controller. */
export const CLUSTER_RANGES = "cluster-ranges";

/** An agent may outlive its node for a while, and write a slice again that was removed with the node. */
const ORPHAN_AFTER_MS = 30_000;

/** Pods come in crowds, and the agents of all nodes read each status that is written. */
const CLIENTS_AFTER_MS = 5_000;

/** What the operator writes comes back from several watches: one look at all of it is enough. */
const CHILDREN_AFTER_MS = 100;

/** Nodes come in crowds as well, and what is published is read by all of them. */
const CLUSTER_RANGES_AFTER_MS = 500;

export function watchCaches(
  controllers: Controllers<Pick<Controller, "watch" | "watchOwn">>,
  caches: Caches,
): void {
  const { egress, slice, clusterRanges } = controllers;
  const { egresses, children, slices, endpointSlices, nodes, namespaces } = caches;
  const endpointSlicesOf = (node: string) => endpointSlices.store.byIndex(BY_NODE, node);
  const slicesBy = (index: string) => (value: string) => slices.store.byIndex(index, value);

  for (const cache of Object.values(children)) egress.watch<KubeObject>(cache, itself, CHILDREN_AFTER_MS);
  // A status tells of failures, each time in other words perhaps.
  egress.watchOwn(egresses, itself, CHILDREN_AFTER_MS);
  egress.watch(egresses, specChanged);
  egress.watch(slices, ({ object }) => egressKeys(object), CLIENTS_AFTER_MS);
  egress.watch(slices, reportsChanged);
  egress.watch(nodes, (change) => egressesOfSilentNode(change, slicesBy(BY_NODE), endpointSlicesOf));
  egress.watch(endpointSlices, ({ object }) => egressKeys(object));
  egress.watch(namespaces, (change) => toldOtherwise(change, egresses.store.list()));
  // ClusterRangesIncomplete depends on them.
  egress.watch(caches.clusterRanges, () => egresses.store.keys());

  slice.watch(slices, itself, ORPHAN_AFTER_MS);
  slice.watch(egresses, (change) => slicesOfNewEgress(change, slicesBy(BY_EGRESS)));
  slice.watch(nodes, (change) => slicesOfGoneNode(change, slicesBy(BY_NODE)));

  for (const cache of [caches.serviceCidrs, caches.services, caches.clusterRanges, nodes])
    clusterRanges.watch<KubeObject>(cache, () => [CLUSTER_RANGES], CLUSTER_RANGES_AFTER_MS);
}

/** Of children, too: they have their Egress's name. */
export function itself({ key }: Change<unknown>): readonly string[] {
  return [key];
}

/** What an author wants is begun at once, annotations too; a status is the operator's own. */
export function specChanged({ key, object, previous }: Change<StoredEgress>): readonly string[] {
  const isSame =
    object.metadata.generation === previous?.metadata.generation &&
    isDeepStrictEqual(object.metadata.annotations, previous?.metadata.annotations);
  return isSame ? [] : [key];
}

/** Agents that would report the same gateway wait until its status says so. */
function reportsChanged({ type, object, previous }: Change<SliceHead>): readonly string[] {
  const others = type === "deleted" ? [] : (previous?.suspects ?? []);
  return isDeepStrictEqual(object.suspects, others) ? [] : egressKeys(object);
}

/**
 * What a node has reported counts while it is heard of. A gateway of it that drains is lost with it, and its EndpointSlice
 * may have said all before.
 */
function egressesOfSilentNode(
  { object, previous }: Change<NodeHead>,
  slicesOf: (node: string) => readonly SliceHead[],
  endpointSlicesOf: (node: string) => readonly EndpointSlice[],
): readonly string[] {
  if (object.isSilent === previous?.isSilent) return [];
  const { name } = object.metadata;
  const reporting = slicesOf(name).filter(({ suspects }) => suspects.length > 0);
  return [...reporting, ...endpointSlicesOf(name)].flatMap(egressKeys);
}

/** Egresses whose status does not say what a namespace is to them now. */
export function toldOtherwise(
  { type, object }: Change<NamespaceHead>,
  egresses: readonly StoredEgress[],
): readonly string[] {
  const { name, labels } = object.metadata;
  const present = type === "deleted" ? undefined : labels;
  return egresses.filter((egress) => concerns(egress, name, present)).map(objectKey);
}

/** Some may be of a former Egress of that name. */
export function slicesOfNewEgress(
  { type, key }: Change<unknown>,
  slicesOf: (egress: string) => readonly KubeObject[],
): readonly string[] {
  return type === "added" ? slicesOf(key).map(objectKey) : [];
}

export function slicesOfGoneNode(
  { type, object }: Change<KubeObject>,
  slicesOf: (node: string) => readonly KubeObject[],
): readonly string[] {
  return type === "deleted" ? slicesOf(object.metadata.name).map(objectKey) : [];
}
