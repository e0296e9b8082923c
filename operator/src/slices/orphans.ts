/** EgressClientSlices of nodes that are gone: nobody else removes them, for their writer is gone too. */

import { EgressClientSlice } from "@egress-nat/crds";
import { done, type Outcome } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { z } from "zod";

/** All that the operator keeps of a slice: of its clients only how many they are. */
export const SliceHead = z.object({
  metadata: EgressClientSlice.shape.metadata.pick({
    name: true,
    namespace: true,
    uid: true,
    resourceVersion: true,
    labels: true,
  }),
  nodeName: z.string(),
  clients: z.array(z.unknown()).transform(({ length }) => length),
});
export type SliceHead = z.infer<typeof SliceHead>;

/** What the housekeeping sees and does; all of it is injected. */
export interface SliceWorld {
  slice(key: string): SliceHead | undefined;
  /** Whether the node is known to the watch. */
  knowsNode(name: string): boolean;
  /** Asks the API server: a slice may arrive before its node does. */
  hasNode(name: string, signal: AbortSignal): Promise<boolean>;
  deleteSlice(slice: SliceHead, signal: AbortSignal): Promise<void>;
}

/**
 * Deletes a slice whose node is gone.
 *
 * @param key "namespace/name" of the slice
 */
export async function reconcileSlice(
  key: string,
  world: SliceWorld,
  logger: Logger,
  signal: AbortSignal,
): Promise<Outcome> {
  const slice = world.slice(key);
  if (slice === undefined || world.knowsNode(slice.nodeName)) return done;
  if (await world.hasNode(slice.nodeName, signal)) return done;
  await world.deleteSlice(slice, signal);
  logger.info({ slice: key, node: slice.nodeName }, "slice of a node that is gone deleted");
  return done;
}
