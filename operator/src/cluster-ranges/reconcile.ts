/** Publishes the networks of the cluster. */

import { isDeepStrictEqual } from "node:util";
import { CLUSTER_RANGES_CONFIG_MAP, ClusterRanges, clusterRangesData } from "@egress-nat/crds";
import {
  CONFIG_MAP_RESOURCE,
  done,
  type Outcome,
  type ReconcileContext,
  type Reconciler,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import { FIELD_MANAGER } from "../egress/field-manager.ts";
import { clusterRanges, type RangesBySource } from "./ranges.ts";

export interface ClusterRangesSnapshot {
  /** What they are. */
  readonly ranges: readonly string[];
  /** What agents and gateways read, as last seen; undefined where there is nothing. */
  readonly published: ClusterRanges | undefined;
}

export interface ClusterRangesOptions {
  readonly transport: Transport;
  /** Where they are published. */
  readonly namespace: string;
  readonly sources: () => RangesBySource;
  readonly published: () => ClusterRanges | undefined;
}

export function clusterRangesReconciler(options: ClusterRangesOptions): Reconciler<ClusterRangesSnapshot> {
  const { transport, namespace, sources, published } = options;
  const configMaps = new ResourceClient(transport, CONFIG_MAP_RESOURCE, (raw) => ClusterRanges.parse(raw));
  return {
    gather: () => ({ ranges: clusterRanges(sources()), published: published() }),
    reconcile: (snapshot, context) => publishRanges(snapshot, configMaps, namespace, context),
  };
}

/** @throws KubeError Conflict where what is published is not what was looked at any more */
async function publishRanges(
  { ranges, published }: ClusterRangesSnapshot,
  configMaps: ResourceClient<ClusterRanges>,
  namespace: string,
  { logger, signal }: ReconcileContext,
): Promise<Outcome> {
  if (isDeepStrictEqual(ranges, published?.data?.ranges)) return done;
  const { resourceVersion } = published?.metadata ?? {};
  const object = {
    metadata: { name: CLUSTER_RANGES_CONFIG_MAP, namespace, resourceVersion },
    data: clusterRangesData(ranges),
  };
  const options = { fieldManager: FIELD_MANAGER, signal };
  if (published === undefined) await configMaps.createByApply(object, options);
  else await configMaps.apply(object, { ...options, force: true });
  logger.info({ networks: ranges.length }, "networks of the cluster published");
  return done;
}
