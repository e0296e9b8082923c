/** Publishes the networks of the cluster. */

import { isDeepStrictEqual } from "node:util";
import type { ClusterRanges } from "@egress-nat/crds";
import { done, type Outcome } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";

/** What the publisher sees and does; all of it is injected. */
export interface ClusterRangesWorld {
  /** What they are. */
  clusterRanges(): readonly string[];
  /** What agents and gateways read, as last seen; undefined where there is nothing. */
  published(): ClusterRanges | undefined;
  /**
   * @param seen what was looked at; undefined: nothing
   * @throws KubeError Conflict where it is not what was looked at any more
   */
  publish(cidrs: readonly string[], seen: ClusterRanges | undefined, signal: AbortSignal): Promise<void>;
}

/** @throws KubeError when the API server refused it, or could not be asked */
export async function reconcileClusterRanges(
  world: ClusterRangesWorld,
  logger: Logger,
  signal: AbortSignal,
): Promise<Outcome> {
  const cidrs = world.clusterRanges();
  const seen = world.published();
  if (isDeepStrictEqual(cidrs, seen?.data?.ranges)) return done;
  await world.publish(cidrs, seen, signal);
  logger.info({ networks: cidrs.length }, "networks of the cluster published");
  return done;
}
