/** Replaces gateways that nobody but the operator itself wants to be replaced, or adjusts them while that has to wait. */

import { KubeError, type ReconcileContext } from "@egress-nat/kube";
import { blameOf } from "./blame.ts";
import { CHILD_RESOURCES } from "./children/index.ts";
import type { ObservedDeployment } from "./observed.ts";
import type { Step } from "./plan.ts";
import { isServing, templateOf } from "./rollout.ts";
import type { Hold } from "./status.ts";
import type { EgressWorld } from "./world.ts";

type UpgradeStep = Extract<Step, { action: "upgrade" | "hold" }>;

/** @throws KubeError whatever the API server has said; also again what it said to the last try, while that waits for its next turn */
export async function takeUpgradeStep(
  step: UpgradeStep,
  { children, upgradeTurns }: Pick<EgressWorld, "children" | "upgradeTurns">,
  { key, logger, signal }: ReconcileContext,
): Promise<{ readonly result: ObservedDeployment; readonly hold?: Hold }> {
  const { observed, adjustment } = step;
  const adjusted = async () =>
    adjustment === undefined ? observed : children.adjust(observed, adjustment, signal);
  if (step.action === "hold") return { result: await adjusted(), hold: "UpgradePaused" };
  if (!upgradeTurns.take(key, isServing(observed), templateOf(observed))) {
    const result = await adjusted();
    const failure = upgradeTurns.failure(key);
    if (failure !== undefined) throw failure;
    return { result, hold: "UpgradeWaits" };
  }
  try {
    const result = await children.apply("deployment", step.manifest, observed, signal);
    logger.info({ kind: CHILD_RESOURCES.deployment.kind, action: step.action }, "step taken");
    return { result };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    const blame = blameOf(error);
    if (blame !== undefined) upgradeTurns.failed(key, error);
    // Else it may have been carried out, as where the answer is lost; then the next try is a conflict.
    if (blame === "object") upgradeTurns.giveBack(key);
    throw error;
  }
}
