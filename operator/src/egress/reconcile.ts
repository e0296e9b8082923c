/** Makes the children and the status of one Egress what they should be. */

import { isDeepStrictEqual } from "node:util";
import { type EgressStatus, isInvalid } from "@egress-nat/crds";
import {
  done,
  hasCode,
  ifFound,
  type KubeError,
  type Outcome,
  type ReconcileContext,
} from "@egress-nat/kube";
import { announcements } from "./announcements.ts";
import { type Applied, applyPlan } from "./apply.ts";
import type { ChildKind } from "./children/index.ts";
import { outcomeOf } from "./outcome.ts";
import { type EgressSnapshot, planEgress } from "./plan.ts";
import type { Problem } from "./standard-conditions.ts";
import { egressStatus, type StoredEgress } from "./status.ts";
import type { EgressWorld } from "./world.ts";

/**
 * Decides and applies for one Egress; what is as it should be is not written.
 *
 * @param snapshot undefined: it is gone, or about to go
 * @throws KubeError when the API server refused something, or could not be asked
 */
export async function reconcileEgress(
  snapshot: EgressSnapshot | undefined,
  world: EgressWorld,
  context: ReconcileContext,
): Promise<Outcome> {
  const { lastingFailures, upgradeTurns } = world;
  const { key } = context;
  if (snapshot === undefined) {
    // The garbage collector removes the children of what is gone.
    lastingFailures.forget(key);
    return done;
  }
  const plan = planEgress(snapshot, world.settings);
  const applied = await applyPlan(snapshot.egress, plan, world, context).catch((error: unknown) => {
    if (!hasCode(error, "Conflict")) lastingFailures.interrupted(key);
    throw error;
  });
  const now = world.now();
  const failing = applied.failures.map(({ child }) => child);
  const lasting = lastingFailures.seen(key, failing, Date.parse(now));
  // Others would wait for as long as it lasts.
  if (lasting.has("deployment")) upgradeTurns.giveBack(key);
  const status = statusOf(snapshot.egress, applied, lasting, world, now);
  return tell(snapshot, applied, status, world, context);
}

function statusOf(
  egress: StoredEgress,
  { children, problems, failures, hold }: Applied,
  lasting: ReadonlySet<ChildKind>,
  world: EgressWorld,
  now: string,
): EgressStatus {
  const { deployment, service } = children;
  const lastingProblems = failures.flatMap(({ child, error: { message } }): Problem[] =>
    lasting.has(child) ? [{ reason: "ChildRefused", message, isRetried: true }] : [],
  );
  const input = {
    ...{ deployment, service, hold, failure: failures[0]?.error.message },
    ...{ problems: [...problems, ...lastingProblems], ...world.surroundings(egress) },
  };
  return egressStatus(egress, input, now);
}

/** By the status and by events. @returns when to look again */
async function tell(
  { egress, children }: EgressSnapshot,
  applied: Applied,
  status: EgressStatus,
  world: EgressWorld,
  context: ReconcileContext,
): Promise<Outcome> {
  let conflict: KubeError | undefined;
  if (!isDeepStrictEqual(status, egress.status)) {
    conflict = await writeStatus(egress, status, world, context);
    context.logger.debug({ status, isWritten: conflict === undefined }, "status written");
  }
  const replicas = [children.deployment, applied.children.deployment].map((seen) => seen?.spec.replicas);
  // What another status says of the Egress was told with that one.
  const before = conflict === undefined ? egress.status : status;
  for (const announcement of announcements(before, status, applied.created, replicas)) {
    world.announce(egress, announcement);
  }
  return outcomeOf(egress, applied, conflict);
}

/** @returns the Conflict, where the Egress is no longer the one that was looked at: look again */
async function writeStatus(
  egress: StoredEgress,
  status: EgressStatus,
  world: EgressWorld,
  { logger, signal }: ReconcileContext,
): Promise<KubeError | undefined> {
  try {
    // Where it was deleted meanwhile there is nothing left to say.
    await ifFound(world.writeStatus(egress, status, signal));
  } catch (error) {
    if (hasCode(error, "Conflict")) return error;
    // A rule over the whole object is judged again with each status; the event tells what the status cannot.
    if (!isInvalid(egress) || !hasCode(error, "Invalid")) throw error;
    logger.warn(
      { err: error, invalid: egress.invalid },
      "cannot understand the Egress, and its status was refused",
    );
  }
  return undefined;
}
