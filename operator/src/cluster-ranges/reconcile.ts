/** Publishes the networks of the cluster. */

import { isDeepStrictEqual } from "node:util";
import { CLUSTER_RANGES_CONFIG_MAP, ClusterRanges, clusterRangesData, OPERATOR } from "@egress-nat/crds";
import { CONFIG_MAP_RESOURCE, done, type Reconciler, ResourceClient, type Transport } from "@egress-nat/kube";
import type { PublishedRanges } from "./published.ts";
import { clusterRanges, type RangesBySource } from "./ranges.ts";

export interface ClusterRangesSnapshot {
  readonly ranges: readonly string[];
  /** What agents and gateways read, as last seen; undefined where there is nothing. */
  readonly published: ClusterRanges | undefined;
}

/** @param namespace where they are published */
export function clusterRangesReconciler(
  transport: Transport,
  namespace: string,
  known: () => RangesBySource,
  published: Pick<PublishedRanges, "current">,
): Reconciler<ClusterRangesSnapshot> {
  const configMaps = new ResourceClient(transport, CONFIG_MAP_RESOURCE, (raw) => ClusterRanges.parse(raw));
  return {
    gather: () => ({ ranges: clusterRanges(known()), published: published.current }),
    /** @throws KubeError Conflict where what is published is not what was looked at any more */
    async reconcile({ ranges, published: seen }, { logger, signal }) {
      if (isDeepStrictEqual(ranges, seen?.data?.ranges)) return done;
      const { resourceVersion } = seen?.metadata ?? {};
      const metadata = { name: CLUSTER_RANGES_CONFIG_MAP, namespace, resourceVersion };
      const object = { metadata, data: clusterRangesData(ranges) };
      const options = { fieldManager: OPERATOR, signal };
      if (seen === undefined) await configMaps.createByApply(object, options);
      else await configMaps.apply(object, { ...options, force: true });
      logger.info({ networks: ranges.length }, "networks of the cluster published");
      return done;
    },
  };
}
