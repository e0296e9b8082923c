/** What has to be done for the children of an Egress to be as they should. */

import { EGRESS_RESOURCE, type Egress } from "@egress-nat/crds";
import { isApplied, withDigest } from "@egress-nat/kube";
import { type ChildKind, desiredChildren, type GatewaySettings, type Manifest } from "./children/index.ts";
import { FIELD_MANAGER } from "./field-manager.ts";
import type { ObservedChild, ObservedChildren } from "./observed.ts";

/** Tells what was applied last, so that nothing is written that would change nothing. */
const DIGEST_ANNOTATION = "coil.cybozu.com/applied-digest";

/** One step, in the order in which the steps are taken. */
export type Step =
  /** Nothing of that name is known. */
  | { readonly action: "create"; readonly child: ChildKind; readonly manifest: Manifest }
  | { readonly action: "update"; readonly child: ChildKind; readonly manifest: Manifest }
  | { readonly action: "delete"; readonly child: ChildKind; readonly observed: ObservedChild }
  /** It should not be, and none is known; but one that has lost our label is in no store: look, and delete it. */
  | { readonly action: "sweep"; readonly child: ChildKind }
  /** It is a child of a former Egress of that name, and the garbage collector is about to remove it. */
  | { readonly action: "await"; readonly child: ChildKind }
  /** Something of that name belongs to somebody else, and is left alone. */
  | { readonly action: "yield"; readonly child: ChildKind; readonly observed: ObservedChild };

/**
 * @param egress what should be
 * @param observed what is
 * @param settings what holds for all gateways
 */
export function planChildren(
  egress: Egress,
  observed: ObservedChildren,
  settings: GatewaySettings,
): readonly Step[] {
  const desired = Object.entries(desiredChildren(egress, settings)) as [ChildKind, Manifest | undefined][];
  return desired.flatMap(([child, manifest]) => planChild(egress, child, manifest, observed[child]));
}

/** Whether an object was made for this very Egress, and not for a former one of that name. */
export function belongsTo(egress: Egress, { metadata }: ObservedChild): boolean {
  return (
    metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === egress.metadata.uid) ??
    false
  );
}

function belongsToPredecessor(egress: Egress, { metadata }: ObservedChild): boolean {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  return (
    owner?.kind === EGRESS_RESOURCE.kind &&
    owner.name === egress.metadata.name &&
    owner.uid !== egress.metadata.uid
  );
}

/** Whether to apply a manifest would change nothing. */
export function isAsWanted(observed: ObservedChild, manifest: Manifest): boolean {
  return isApplied(observed, manifest, { fieldManager: FIELD_MANAGER, annotation: DIGEST_ANNOTATION });
}

function isSpecSeen({ metadata, status }: Egress): boolean {
  return status?.observedGeneration === metadata.generation;
}

function planChild(
  egress: Egress,
  child: ChildKind,
  wanted: Manifest | undefined,
  observed: ObservedChild | undefined,
): readonly Step[] {
  if (wanted === undefined) {
    // Once for each spec: a label that is lost while the operator runs is put back at once.
    if (observed === undefined) return isSpecSeen(egress) ? [] : [{ action: "sweep", child }];
    return belongsTo(egress, observed) ? [{ action: "delete", child, observed }] : [];
  }
  const manifest = withDigest(wanted, DIGEST_ANNOTATION);
  if (observed === undefined) return [{ action: "create", child, manifest }];
  if (belongsToPredecessor(egress, observed)) return [{ action: "await", child }];
  if (!belongsTo(egress, observed)) return [{ action: "yield", child, observed }];
  return isAsWanted(observed, manifest) ? [] : [{ action: "update", child, manifest }];
}
