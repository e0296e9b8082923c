import { isInvalid } from "@egress-nat/crds";
import { done, type KubeError, type Outcome, requeueAfter, stalled } from "@egress-nat/kube";
import type { Applied } from "./apply.ts";
import type { StoredEgress } from "./status.ts";

/** An object in the way has no label of ours, so no watch tells when it is gone. */
const CONFLICT_RECHECK_MS = 30_000;

/** Whose turn has come is woken; this is for the turn that somebody else did not take. */
const TURN_RECHECK_MS = 30_000;

/**
 * When an Egress is looked at again.
 *
 * @param conflict what its status has met: it is no longer the one that was looked at
 * @throws KubeError what another try may mend
 */
export function outcomeOf(
  egress: StoredEgress,
  { failures, refusal, problems, hold }: Applied,
  conflict: KubeError | undefined,
): Outcome {
  const error = conflict ?? failures[0]?.error ?? refusal;
  if (error !== undefined) throw error;
  if (problems.length > 0) return stalled(CONFLICT_RECHECK_MS);
  if (isInvalid(egress)) return stalled();
  return hold === "UpgradeWaits" ? requeueAfter(TURN_RECHECK_MS) : done;
}
