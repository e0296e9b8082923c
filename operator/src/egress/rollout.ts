/**
 * Who wants gateways to be replaced: the author of an Egress, or the operator itself, with a new image or new defaults. The
 * first has asked for it; the second happens to every Egress of the cluster at once, and is done by turns.
 */

import { isDeepStrictEqual } from "node:util";
import { type Egress, PAUSE_ROLLOUT_ANNOTATION } from "@egress-nat/crds";
import { digest } from "@egress-nat/kube";
import type { V1DeploymentSpec } from "@kubernetes/client-node";
import type { Manifest } from "./children/index.ts";
import type { ObservedChild, ObservedDeployment } from "./observed.ts";

/** Of the pod template: gateways are replaced when it changes. */
const TEMPLATE_ANNOTATION = "coil.cybozu.com/template-digest";

/**
 * Of what the author of the Egress has a say in, as far as gateways are replaced for it. What a release adds to it has to
 * leave the digest alone where the author says nothing of it: else that release is taken for the wish of all authors.
 */
const AUTHORED_ANNOTATION = "coil.cybozu.com/authored-digest";

/** The template that the operator itself has applied: after a restart the operator knows by it whose turn it is. */
const UPGRADE_ANNOTATION = "coil.cybozu.com/upgrade";

/** As the Deployment controller says it, and goes on to say though gateways fail later. */
const COMPLETE = "NewReplicaSetAvailable";

/** The manifest of a Deployment, with what tells later whether a change of it replaces gateways, and by whose wish. */
export function withCause(manifest: Manifest, { spec }: Egress): Manifest {
  const { template } = manifest.spec as { readonly template: object };
  const { template: authored, drainTimeoutSeconds } = spec;
  return annotated(manifest, {
    [TEMPLATE_ANNOTATION]: digest(template),
    [AUTHORED_ANNOTATION]: digest({ ...(authored && { template: authored }), drainTimeoutSeconds }),
  });
}

/**
 * Whether to apply a manifest would replace gateways though their author has not asked for it.
 *
 * A Deployment that an earlier release has made does not say what it was made for. Then it tells that an operator has seen
 * this spec before.
 *
 * @param manifest of {@link withCause}
 */
export function isUpgrade(egress: Egress, { metadata }: ObservedChild, manifest: Manifest): boolean {
  const { annotations: live = {} } = metadata;
  const { annotations: wanted = {} } = manifest.metadata;
  if (egress.spec.replicas === 0 || live[TEMPLATE_ANNOTATION] === wanted[TEMPLATE_ANNOTATION]) return false;
  const authored = live[AUTHORED_ANNOTATION];
  return authored === undefined ? isSpecSeen(egress) : authored === wanted[AUTHORED_ANNOTATION];
}

/** Whether an operator has told of this spec before. */
export function isSpecSeen({ metadata, status }: Egress): boolean {
  return status?.observedGeneration === metadata.generation;
}

/** What of a Deployment changes without a gateway being replaced: how many there are, and how they will be. */
export type Adjustment = Required<Pick<V1DeploymentSpec, "replicas" | "strategy">>;

/** @returns what of that differs from a manifest; undefined where nothing does */
export function adjustmentOf(deployment: ObservedDeployment, manifest: Manifest): Adjustment | undefined {
  const { replicas, strategy } = manifest.spec as Adjustment;
  const wanted = { replicas, strategy };
  const { spec } = deployment;
  return isDeepStrictEqual({ replicas: spec.replicas, strategy: spec.strategy }, wanted) ? undefined : wanted;
}

/** Whether the status of a Deployment tells of its spec as it is. */
export function isObserved({ metadata, status }: ObservedDeployment): boolean {
  return status.observedGeneration >= (metadata.generation ?? 0);
}

export function isServing({ status }: ObservedDeployment): boolean {
  return status.availableReplicas > 0;
}

/** The manifest, marked as one that the operator itself has brought. */
export function asUpgrade(manifest: Manifest): Manifest {
  return annotated(manifest, { [UPGRADE_ANNOTATION]: templateOf(manifest) });
}

/** Whether a Deployment has the mark of an upgrade to the template of this very manifest. */
export function isMarked({ metadata }: ObservedChild, manifest: Manifest): boolean {
  return metadata.annotations?.[UPGRADE_ANNOTATION] === templateOf(manifest);
}

/** Tells pod templates apart. */
export function templateOf({ metadata }: Pick<ObservedChild | Manifest, "metadata">): string {
  return metadata.annotations?.[TEMPLATE_ANNOTATION] ?? "";
}

/** Whether an upgrade of a Deployment's gateways has begun and is not complete. */
export function isUpgrading(deployment: ObservedDeployment): boolean {
  const { metadata, status } = deployment;
  const { annotations = {} } = metadata;
  const upgrade = annotations[UPGRADE_ANNOTATION];
  if (upgrade === undefined || upgrade !== annotations[TEMPLATE_ANNOTATION]) return false;
  const progress = status.conditions.find(({ type }) => type === "Progressing");
  const isOver = status.replicas === status.updatedReplicas && progress?.reason === COMPLETE;
  return !isObserved(deployment) || !isOver;
}

/** Whether its author wants to say when the gateways of an Egress are upgraded. */
export function isPaused({ metadata }: Pick<Egress, "metadata">): boolean {
  return metadata.annotations?.[PAUSE_ROLLOUT_ANNOTATION] === "true";
}

function annotated(manifest: Manifest, annotations: Readonly<Record<string, string>>): Manifest {
  const { metadata } = manifest;
  return { ...manifest, metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } } };
}
