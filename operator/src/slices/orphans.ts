/** EgressClientSlices whose node is gone, and with it their writer, or whose Egress is no longer the one they are of. */

import { EGRESS_RESOURCE } from "@egress-nat/crds";
import {
  done,
  type ObjectReference,
  type Outcome,
  objectKey,
  type ReconcileContext,
  type Reconciler,
} from "@egress-nat/kube";
import type { Caches } from "../caches.ts";
import type { SliceHead } from "./slice-head.ts";

/** A slice, and what the watches know of what it is of. */
export interface SliceSnapshot {
  readonly slice: SliceHead;
  readonly knowsNode: boolean;
  /** UID of the Egress of the name that the slice is of. */
  readonly egressUid: string | undefined;
}

/** What the housekeeping asks the API server, and has it do. */
export interface SliceApi {
  hasNode(name: string, signal: AbortSignal): Promise<boolean>;
  /** UID of the Egress of that name. */
  egressUid(egress: ObjectReference, signal: AbortSignal): Promise<string | undefined>;
  /** Of this version, and no other: its agent may have made it right meanwhile. */
  delete(slice: SliceHead, signal: AbortSignal): Promise<void>;
}

export function sliceReconciler(caches: Caches, api: SliceApi): Reconciler<SliceSnapshot | undefined> {
  return {
    gather: (key) => {
      const slice = caches.slices.store.get(key);
      if (slice === undefined) return undefined;
      const owner = ownerOf(slice);
      return {
        slice,
        knowsNode: caches.nodes.store.get(slice.nodeName) !== undefined,
        egressUid: owner && caches.egresses.store.get(objectKey({ metadata: owner.egress }))?.metadata.uid,
      };
    },
    reconcile: (snapshot, context) => reconcileSlice(snapshot, api, context),
  };
}

/** Deletes a slice whose node is gone, or that is of a former Egress of that name. */
export async function reconcileSlice(
  snapshot: SliceSnapshot | undefined,
  api: SliceApi,
  { logger, signal }: ReconcileContext,
): Promise<Outcome> {
  if (snapshot === undefined) return done;
  const { slice } = snapshot;
  const why = (await isOfGoneNode(snapshot, api, signal))
    ? "its node is gone"
    : (await isOfFormerEgress(snapshot, api, signal)) && "its Egress was deleted and created again";
  if (!why) return done;
  await api.delete(slice, signal);
  logger.info({ node: slice.nodeName, why }, "orphaned slice deleted");
  return done;
}

async function isOfGoneNode(
  { slice, knowsNode }: SliceSnapshot,
  api: SliceApi,
  signal: AbortSignal,
): Promise<boolean> {
  return !knowsNode && !(await api.hasNode(slice.nodeName, signal));
}

/** The garbage collector sees to that where it runs, and its view is late at times. Those of an Egress that is gone are its own. */
async function isOfFormerEgress(
  { slice, egressUid }: SliceSnapshot,
  api: SliceApi,
  signal: AbortSignal,
): Promise<boolean> {
  const owner = ownerOf(slice);
  if (owner === undefined) return false;
  const isAnother = (uid: string | undefined) => uid !== undefined && uid !== owner.uid;
  return isAnother(egressUid) && isAnother(await api.egressUid(owner.egress, signal));
}

/** The Egress that a slice is of, and its UID then. */
function ownerOf({ metadata }: SliceHead): { egress: ObjectReference; uid: string } | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (owner?.kind !== EGRESS_RESOURCE.kind) return undefined;
  return { egress: { namespace: metadata.namespace, name: owner.name }, uid: owner.uid };
}
