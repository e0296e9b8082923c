/** EgressClientSlices whose node is gone, and with it their writer, or whose Egress is no longer the one they are of. */

import { EGRESS_RESOURCE, ObjectHead, SLICE_RESOURCE } from "@egress-nat/crds";
import {
  type Cache,
  done,
  ifFound,
  type KubeObject,
  NODE_RESOURCE,
  objectKey,
  type Reconciler,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";
import { z } from "zod";
import { NodeHead } from "../cluster-ranges/sources.ts";
import { SliceHead } from "./slice-head.ts";

const EgressHead = z.object({ metadata: ObjectHead });

/** A slice, and what the watches know of what it is of. */
interface SliceSnapshot {
  readonly slice: SliceHead;
  readonly knowsNode: boolean;
  /** UID of the Egress that now has the name of the one that it was written for. */
  readonly egressUid: string | undefined;
}

/** What is watched, as far as slices depend on it. */
interface SliceCaches {
  readonly slices: Pick<Cache<SliceHead>, "store">;
  readonly nodes: Pick<Cache<NodeHead>, "store">;
  readonly egresses: { readonly store: { get(key: string): KubeObject | undefined } };
}

/** Deletes slices whose node is gone, or that are of a former Egress of that name. */
export function orphanReconciler(
  { slices, nodes, egresses }: SliceCaches,
  transport: Transport,
): Reconciler<SliceSnapshot | undefined> {
  const client = new ResourceClient(transport, SLICE_RESOURCE, (raw) => SliceHead.parse(raw));
  return {
    gather: (key) => {
      const slice = slices.store.get(key);
      if (slice === undefined) return undefined;
      const owner = ownerOf(slice);
      return {
        ...{ slice, knowsNode: nodes.store.get(slice.nodeName) !== undefined },
        egressUid: owner && egresses.store.get(objectKey({ metadata: owner }))?.metadata.uid,
      };
    },
    async reconcile(snapshot, { logger, signal }) {
      if (snapshot === undefined) return done;
      const why = (await isOfGoneNode(snapshot, transport, signal))
        ? "its node is gone"
        : (await isOfFormerEgress(snapshot, transport, signal)) && "its Egress was deleted and created again";
      if (!why) return done;
      const { metadata, nodeName } = snapshot.slice;
      const { uid, resourceVersion } = metadata;
      // Of this version, and no other: its agent may have made it right meanwhile.
      await ifFound(client.delete(metadata, { preconditions: { uid, resourceVersion }, signal }));
      logger.info({ node: nodeName, why }, "orphaned slice deleted");
      return done;
    },
  };
}

/** The API server is asked: a slice may arrive before its node does. */
async function isOfGoneNode(
  { slice, knowsNode }: SliceSnapshot,
  transport: Transport,
  signal: AbortSignal,
): Promise<boolean> {
  if (knowsNode) return false;
  const nodes = new ResourceClient(transport, NODE_RESOURCE, (raw) => NodeHead.parse(raw));
  return (await ifFound(nodes.get({ name: slice.nodeName }, { signal }))) === undefined;
}

/**
 * The garbage collector sees to that where it runs, and its view is late at times. Those of an Egress that is gone are its
 * own. The API server is asked: a slice may arrive before its Egress does.
 */
async function isOfFormerEgress(
  { slice, egressUid }: SliceSnapshot,
  transport: Transport,
  signal: AbortSignal,
): Promise<boolean> {
  const owner = ownerOf(slice);
  if (owner === undefined || egressUid === undefined || egressUid === owner.uid) return false;
  const { namespace, name, uid } = owner;
  // By a list of one: the operator has no right to get Egresses, because it lists and watches them all.
  const egresses = new ResourceClient(transport, EGRESS_RESOURCE, (raw) => EgressHead.parse(raw));
  const { items } = await egresses.list({ namespace, fieldSelector: `metadata.name=${name}`, signal });
  return items.length > 0 && items[0]?.metadata.uid !== uid;
}

/** The Egress that a slice was written for. */
function ownerOf({ metadata }: SliceHead) {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (owner?.kind !== EGRESS_RESOURCE.kind) return undefined;
  return { namespace: metadata.namespace, name: owner.name, uid: owner.uid };
}
