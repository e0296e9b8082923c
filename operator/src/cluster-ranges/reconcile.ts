/** Publishes the networks of the cluster. */

import { isDeepStrictEqual } from "node:util";
import { done, type Outcome } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";

/** What the publisher sees and does; all of it is injected. */
export interface ClusterRangesWorld {
  /** What they are. */
  clusterRanges(): readonly string[];
  /** What agents and gateways read; undefined before anything was published. */
  published(): readonly string[] | undefined;
  publish(cidrs: readonly string[], signal: AbortSignal): Promise<void>;
}

/** @throws KubeError when the API server refused it, or could not be asked */
export async function reconcileClusterRanges(
  world: ClusterRangesWorld,
  logger: Logger,
  signal: AbortSignal,
): Promise<Outcome> {
  const cidrs = world.clusterRanges();
  if (isDeepStrictEqual(cidrs, world.published())) return done;
  await world.publish(cidrs, signal);
  logger.info({ networks: cidrs.length }, "networks of the cluster published");
  return done;
}
