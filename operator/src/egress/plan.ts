/** What has to be done for the children of an Egress to be as they should. */

import { EGRESS_LABEL, EGRESS_RESOURCE, type Egress, isInvalid, OPERATOR } from "@egress-nat/crds";
import { type Endpoint, isApplied, withDigest } from "@egress-nat/kube";
import { type ChildKind, desiredChildren, type GatewaySettings, type Manifest } from "./children/index.ts";
import { formerAccounts } from "./former-accounts.ts";
import {
  NO_CHILDREN,
  type ObservedChild,
  type ObservedChildren,
  type ObservedDeployment,
} from "./observed.ts";
import {
  type Adjustment,
  adjustmentOf,
  asUpgrade,
  isMarked,
  isPaused,
  isServing,
  isSpecSeen,
  isUpgrade,
  withCause,
} from "./rollout.ts";
import type { StoredEgress } from "./status.ts";

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
  | (Held & { readonly action: "upgrade"; readonly manifest: Manifest })
  /** The same, but the author of the Egress does not want it now. */
  | (Held & { readonly action: "hold" })
  | { readonly action: "delete"; readonly child: ChildKind; readonly observed: ObservedChild }
  /** It should not be, and none is known; but one that has lost our label is in no store: look, and delete it. */
  | { readonly action: "sweep"; readonly child: ChildKind }
  /** It is a child of a former Egress of that name, and the garbage collector is about to remove it. */
  | { readonly action: "await"; readonly child: ChildKind }
  /** Something of that name belongs to somebody else, and is left alone. */
  | { readonly action: "yield"; readonly child: ChildKind; readonly observed: ObservedChild };

/** While gateways are not replaced their author has a say in how many they are, and how they will be replaced. */
interface Held {
  readonly child: "deployment";
  readonly observed: ObservedDeployment;
  /** undefined: that is as it should be. */
  readonly adjustment: Adjustment | undefined;
}

/** What the children of an Egress are decided by. */
export interface EgressSnapshot {
  readonly egress: StoredEgress;
  /** Those that bear the Egress's label. */
  readonly children: ObservedChildren;
  /** Those that it has, and that end. */
  readonly gateways: readonly Pick<Endpoint, "terminating">[];
}

export interface Plan {
  readonly steps: readonly Step[];
  /** The children that are taken for the Egress's as long as no step makes others of them. */
  readonly children: ObservedChildren;
}

/** Nothing that serves is changed because of an Egress that is not understood: it may be meant otherwise. */
export function planEgress({ egress, children, gateways }: EgressSnapshot, settings: GatewaySettings): Plan {
  if (!isInvalid(egress)) {
    const desired = desiredChildren(egress, settings, formerAccounts(egress, children, gateways));
    return { steps: planChildren(egress, children, desired), children };
  }
  const own = Object.entries(children).filter(
    ([, child]: [string, ObservedChild | undefined]) => child !== undefined && belongsTo(egress, child),
  );
  return { steps: [], children: { ...NO_CHILDREN, ...Object.fromEntries(own) } };
}

function planChildren(
  egress: Egress,
  observed: ObservedChildren,
  desired: ReturnType<typeof desiredChildren>,
): readonly Step[] {
  const each = Object.entries(desired) as [ChildKind, Manifest | undefined][];
  return each.flatMap(([child, manifest]) => planChild(egress, child, manifest, observed));
}

/** Whether an object was made for this very Egress, and not for a former one of that name. */
export function belongsTo(egress: Pick<Egress, "metadata">, { metadata }: ObservedChild): boolean {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  return owner?.uid === egress.metadata.uid;
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
  return isApplied(observed, manifest, { fieldManager: OPERATOR, annotation: DIGEST_ANNOTATION });
}

function planChild(
  egress: Egress,
  child: ChildKind,
  wanted: Manifest | undefined,
  children: ObservedChildren,
): readonly Step[] {
  const observed = children[child];
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
  const { deployment } = children;
  if (child !== "deployment" || deployment === undefined)
    return [{ action: "update", child, manifest, observed }];
  return [planDeployment(egress, deployment, manifest)];
}

function planDeployment(egress: Egress, observed: ObservedDeployment, manifest: Manifest): Step {
  const child = "deployment";
  // One that has lost its annotations is repaired at once, as whatever else was changed by hand.
  const isKnown = observed.metadata.annotations?.[DIGEST_ANNOTATION] !== undefined;
  if (!isKnown || !isUpgrade(egress, observed, manifest)) {
    const marked = isMarked(observed, manifest) ? asUpgrade(manifest) : manifest;
    return { action: "update", child, manifest: marked, observed };
  }
  const held = { child, observed, adjustment: adjustmentOf(observed, manifest) } as const;
  if (isPaused(egress)) return { action: "hold", ...held };
  // One that nobody is served by keeps no other one waiting.
  return { action: "upgrade", ...held, manifest: isServing(observed) ? asUpgrade(manifest) : manifest };
}
