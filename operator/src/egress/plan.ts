/** What has to be done for the children of an Egress to be as they should. */

import { EGRESS_LABEL, EGRESS_RESOURCE, type Egress } from "@egress-nat/crds";
import { isApplied, withDigest } from "@egress-nat/kube";
import { type ChildKind, desiredChildren, type GatewaySettings, type Manifest } from "./children/index.ts";
import { FIELD_MANAGER } from "./field-manager.ts";
import type { ObservedChild, ObservedChildren } from "./observed.ts";
import { asUpgrade, isMarked, isUpgrade, withCause } from "./rollout.ts";

/** Tells what was applied last, so that nothing is written that would change nothing. */
const DIGEST_ANNOTATION = "coil.cybozu.com/applied-digest";

/** One step, in the order in which the steps are taken. */
export type Step =
  /** Nothing of that name is known. */
  | { readonly action: "create"; readonly child: ChildKind; readonly manifest: Manifest }
  | {
      readonly action: "update";
      readonly child: ChildKind;
      readonly manifest: Manifest;
      readonly observed: ObservedChild;
    }
  /** Gateways would be replaced, and nobody but the operator itself wants it: when its turn has come. */
  | { readonly action: "upgrade"; readonly child: "deployment"; readonly manifest: Manifest }
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
export function belongsTo(egress: Pick<Egress, "metadata">, { metadata }: ObservedChild): boolean {
  return (
    metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === egress.metadata.uid) ??
    false
  );
}

/**
 * Whether this operator has made an object for this very Egress. Another product may have: an Egress of coil's has the same
 * UID still when it is ours, and so has the owner of its children.
 */
export function isOurs(egress: Pick<Egress, "metadata">, observed: ObservedChild): boolean {
  const { labels = {}, managedFields = [] } = observed.metadata;
  return belongsTo(egress, observed) && (EGRESS_LABEL in labels || managedFields.length > 0);
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
    // Once for each spec but the first, which wanted none before: a label that is lost while the operator runs is put back.
    const mayHaveBeen = egress.metadata.generation > 1 && !isSpecSeen(egress);
    if (observed === undefined) return mayHaveBeen ? [{ action: "sweep", child }] : [];
    return belongsTo(egress, observed) ? [{ action: "delete", child, observed }] : [];
  }
  const manifest = withDigest(child === "deployment" ? withCause(wanted, egress) : wanted, DIGEST_ANNOTATION);
  if (observed === undefined) return [{ action: "create", child, manifest }];
  if (belongsToPredecessor(egress, observed)) return [{ action: "await", child }];
  if (!belongsTo(egress, observed)) return [{ action: "yield", child, observed }];
  if (isAsWanted(observed, manifest)) return [];
  if (child !== "deployment") return [{ action: "update", child, manifest, observed }];
  // One that has lost its annotations is repaired at once, as whatever else was changed by hand.
  const isKnown = observed.metadata.annotations?.[DIGEST_ANNOTATION] !== undefined;
  if (isKnown && isUpgrade(egress, observed, manifest)) return [{ action: "upgrade", child, manifest }];
  const marked = isMarked(observed, manifest) ? asUpgrade(manifest) : manifest;
  return [{ action: "update", child, manifest: marked, observed }];
}
