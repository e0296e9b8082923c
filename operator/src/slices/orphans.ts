/** EgressClientSlices whose node is gone, and with it their writer, or whose Egress is no longer the one they are of. */

import { EGRESS_RESOURCE, EgressClientSlice } from "@egress-nat/crds";
import { done, type ObjectReference, type Outcome } from "@egress-nat/kube";
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
    ownerReferences: true,
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
  /** UID of the Egress of that name, as the watch knows it. */
  knownEgress(egress: ObjectReference): string | undefined;
  /** The same, from the API server: a slice may arrive before its Egress does. */
  readEgress(egress: ObjectReference, signal: AbortSignal): Promise<string | undefined>;
  /** Of this version, and no other: its agent may have made it right meanwhile. */
  deleteSlice(slice: SliceHead, signal: AbortSignal): Promise<void>;
}

/**
 * Deletes a slice whose node is gone, or that is of a former Egress of that name.
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
  if (slice === undefined) return done;
  const why = (await isOfGoneNode(slice, world, signal))
    ? "its node is gone"
    : (await isOfFormerEgress(slice, world, signal)) && "its Egress was deleted and created again";
  if (!why) return done;
  await world.deleteSlice(slice, signal);
  logger.info({ slice: key, node: slice.nodeName, why }, "orphaned slice deleted");
  return done;
}

async function isOfGoneNode(
  { nodeName }: SliceHead,
  world: SliceWorld,
  signal: AbortSignal,
): Promise<boolean> {
  return !world.knowsNode(nodeName) && !(await world.hasNode(nodeName, signal));
}

/** The garbage collector sees to that where it runs, and its view is late at times. Those of an Egress that is gone are its own. */
async function isOfFormerEgress(
  { metadata }: SliceHead,
  world: SliceWorld,
  signal: AbortSignal,
): Promise<boolean> {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (owner?.kind !== EGRESS_RESOURCE.kind) return false;
  const egress = { namespace: metadata.namespace, name: owner.name };
  const isAnother = (uid: string | undefined) => uid !== undefined && uid !== owner.uid;
  return isAnother(world.knownEgress(egress)) && isAnother(await world.readEgress(egress, signal));
}
