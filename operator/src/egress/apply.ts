/** Takes the steps of a plan. */

import { hasCode, KubeError, type ReconcileContext } from "@egress-nat/kube";
import { blameOf } from "./blame.ts";
import { CHILD_RESOURCES, type ChildKind } from "./children/index.ts";
import { NameConflict } from "./name-conflict.ts";
import type { ObservedChild, ObservedChildren } from "./observed.ts";
import { isAsWanted, isOurs, type Plan, type Step } from "./plan.ts";
import type { Problem } from "./standard-conditions.ts";
import type { Hold, StoredEgress } from "./status.ts";
import { takeUpgradeStep } from "./upgrade.ts";
import type { EgressWorld } from "./world.ts";

/** What became of the children. */
export interface Applied {
  readonly children: ObservedChildren;
  /** Kinds. */
  readonly created: readonly string[];
  readonly problems: readonly Problem[];
  /** By the API server: nothing but a new try tells when it would accept. */
  readonly refusal: KubeError | undefined;
  /** Of the API server by itself, which should pass. */
  readonly failures: readonly { readonly child: ChildKind; readonly error: KubeError }[];
  readonly hold: Hold | undefined;
}

/** What became of one of them. */
interface Attempt {
  readonly step: Step;
  readonly result: ObservedChild | undefined;
  readonly problem?: Problem;
  readonly refusal?: KubeError;
  readonly failure?: KubeError;
  readonly hold?: Hold;
}

type Means = Pick<EgressWorld, "children" | "upgradeTurns">;

/**
 * What gateways need to start comes before the gateways; what does not need each other is done side by side. One child
 * that is refused does not hold up the others.
 *
 * @throws KubeError where neither a child nor the API server is to blame
 */
export async function applyPlan(
  egress: StoredEgress,
  { steps, children }: Plan,
  means: Means,
  context: ReconcileContext,
): Promise<Applied> {
  const sideBySide = (some: readonly Step[]) =>
    allEnded(some.map((step) => attempt(egress, step, children[step.child], means, context)));
  const attempts = [
    ...(await sideBySide(steps.filter(({ child }) => child !== "deployment"))),
    ...(await sideBySide(steps.filter(({ child }) => child === "deployment"))),
  ];
  const changed = Object.fromEntries(attempts.map(({ step, result }) => [step.child, result]));
  const created = attempts.filter(({ step, result }) => step.action === "create" && result !== undefined);
  return {
    children: { ...children, ...changed },
    created: created.map(({ step }) => CHILD_RESOURCES[step.child].kind),
    problems: attempts.flatMap(({ problem }) => problem ?? []),
    refusal: attempts.find(({ refusal }) => refusal !== undefined)?.refusal,
    failures: attempts.flatMap(({ step: { child }, failure: error }) => (error ? { child, error } : [])),
    hold: attempts.find(({ hold }) => hold !== undefined)?.hold,
  };
}

/** As Promise.all, but nothing is under way any more when it has failed. */
async function allEnded<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

async function attempt(
  egress: StoredEgress,
  step: Step,
  observed: ObservedChild | undefined,
  means: Means,
  context: ReconcileContext,
): Promise<Attempt> {
  const { child, action } = step;
  try {
    if (step.action === "upgrade" || step.action === "hold")
      return { step, ...(await takeUpgradeStep(step, means, context)) };
    const result = await takeStep(egress, step, means.children, context.signal);
    context.logger.info({ kind: CHILD_RESOURCES[child].kind, action }, "step taken");
    return { step, result };
  } catch (error) {
    if (error instanceof NameConflict) {
      return { step, result: undefined, problem: { reason: "NameConflict", message: error.message } };
    }
    if (!(error instanceof KubeError)) throw error;
    const blame = blameOf(error);
    if (blame === undefined) throw error;
    if (blame === "server") return { step, result: observed, failure: error };
    const problem = { reason: "ChildRefused", message: error.message } as const;
    return { step, result: observed, problem, refusal: error };
  }
}

async function takeStep(
  egress: StoredEgress,
  step: Exclude<Step, { action: "upgrade" | "hold" }>,
  children: EgressWorld["children"],
  signal: AbortSignal,
): Promise<ObservedChild | undefined> {
  const { child } = step;
  switch (step.action) {
    case "await":
      return undefined;
    case "yield":
      throw new NameConflict(egress, child, step.observed);
    case "delete":
      await children.delete(child, step.observed, signal);
      return undefined;
    case "sweep": {
      const existing = await children.read(child, egress.metadata, signal);
      if (existing !== undefined && isOurs(egress, existing)) await children.delete(child, existing, signal);
      return undefined;
    }
    case "update":
      return children.apply(child, step.manifest, step.observed, signal);
    case "create":
      return create(egress, step, children, signal);
  }
}

/** Without our label an object is in no store, and an apply that is not told so would take it over. */
async function create(
  egress: StoredEgress,
  { child, manifest }: Extract<Step, { action: "create" }>,
  children: EgressWorld["children"],
  signal: AbortSignal,
): Promise<ObservedChild> {
  try {
    return await children.create(child, manifest, signal);
  } catch (error) {
    if (!hasCode(error, "Conflict")) throw error;
  }
  const existing = await children.read(child, egress.metadata, signal);
  if (existing !== undefined && !isOurs(egress, existing)) throw new NameConflict(egress, child, existing);
  // Of an earlier attempt whose answer was lost.
  if (existing !== undefined && isAsWanted(existing, manifest)) return existing;
  return children.apply(child, manifest, existing, signal);
}
