/** Makes the children and the status of one Egress what they should be. */

import { isDeepStrictEqual } from "node:util";
import { type Egress, type EgressStatus, type InvalidEgress, isInvalid } from "@egress-nat/crds";
import {
  done,
  type Endpoint,
  hasCode,
  KubeError,
  type Outcome,
  objectKey,
  requeueAfter,
} from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { type Announcement, announcements } from "./announcements.ts";
import { CHILD_RESOURCES, type ChildKind, type GatewaySettings, type Manifest } from "./children/index.ts";
import type { LastingFailures } from "./lasting-failures.ts";
import { NameConflict } from "./name-conflict.ts";
import { allowedNamespaces, type NamespaceHead } from "./namespaces.ts";
import {
  NO_CHILDREN,
  type ObservedChild,
  type ObservedChildren,
  type ObservedDeployment,
} from "./observed.ts";
import { belongsTo, isAsWanted, isOurs, planChildren, type Step } from "./plan.ts";
import { type Adjustment, adjustment, asUpgrade, isPaused, templateOf } from "./rollout.ts";
import type { Problem } from "./standard-conditions.ts";
import { egressStatus, type Hold, type StoredEgress } from "./status.ts";
import type { UpgradeTurns } from "./upgrade-turns.ts";

/** An object in the way has no label of ours, so no watch tells when it is gone. */
const CONFLICT_RECHECK_MS = 30_000;

/** Whose turn has come is woken; this is for the turn that somebody else did not take. */
const TURN_RECHECK_MS = 30_000;

const INTERNAL_ERROR = 500;

/** What the reconciler sees and does; all of it is injected. */
export interface EgressWorld {
  egress(key: string): StoredEgress | undefined;
  /** The children that bear the Egress's label, as last seen. */
  children(key: string): ObservedChildren;
  /** The pods behind its Service. */
  gateways(key: string): readonly Endpoint[];
  /** Why those that are not ready say that they are not, by the pod's name. */
  gatewayReasons(key: string): ReadonlyMap<string, string>;
  /** How many clients it has. */
  clients(key: string): number;
  /** Whether an address is in none of the cluster's networks that are known. */
  isOutside(address: string): boolean;
  namespaces(): readonly NamespaceHead[];
  /** @returns the object of that name, whoever it belongs to; undefined if there is none */
  read<K extends ChildKind>(child: K, egress: Egress, signal: AbortSignal): Promise<ObservedChildren[K]>;
  /** Server-side apply of what is not there. @throws KubeError Conflict where something of that name is */
  create<K extends ChildKind>(
    child: K,
    manifest: Manifest,
    signal: AbortSignal,
  ): Promise<NonNullable<ObservedChildren[K]>>;
  /**
   * Server-side apply.
   *
   * @param seen what was looked at, whose fields are taken from other managers; undefined: nothing of that name
   * @throws KubeError Conflict where it is not what was looked at any more
   */
  apply<K extends ChildKind>(
    child: K,
    manifest: Manifest,
    seen: ObservedChildren[K],
    signal: AbortSignal,
  ): Promise<NonNullable<ObservedChildren[K]>>;
  /** Sets this, and nothing else. @throws KubeError Conflict as {@link apply} */
  adjust(
    deployment: ObservedDeployment,
    wanted: Adjustment,
    signal: AbortSignal,
  ): Promise<NonNullable<ObservedChildren["deployment"]>>;
  readonly lastingFailures: Pick<LastingFailures, "seen" | "interrupted" | "forget">;
  readonly upgradeTurns: Pick<UpgradeTurns, "take" | "failure" | "failed" | "giveBack">;
  /** @throws KubeError Conflict as {@link apply} */
  delete(child: ChildKind, observed: ObservedChild, signal: AbortSignal): Promise<void>;
  /** @throws KubeError Conflict where it is not this version of the Egress any more */
  writeStatus(egress: StoredEgress, status: EgressStatus, signal: AbortSignal): Promise<void>;
  announce(egress: StoredEgress, announcement: Announcement): void;
  /** RFC 3339. */
  now(): string;
}

/** What became of the children. */
interface Applied {
  readonly children: ObservedChildren;
  readonly created: readonly string[];
  readonly problems: readonly Problem[];
  /** By the API server: nothing but a new try tells when it would accept. */
  readonly refusal: KubeError | undefined;
  /** Of the API server by itself, which should pass. */
  readonly failures: readonly { readonly child: ChildKind; readonly error: KubeError }[];
  /** Why the gateways are not upgraded yet. */
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

/**
 * Gathers, decides and applies for one Egress; what is as it should be is not written.
 *
 * @param key "namespace/name"
 * @throws KubeError when the API server refused something, or could not be asked
 */
export async function reconcileEgress(
  key: string,
  world: EgressWorld,
  settings: GatewaySettings,
  logger: Logger,
  signal: AbortSignal,
): Promise<Outcome> {
  const egress = world.egress(key);
  if (egress === undefined || egress.metadata.deletionTimestamp !== undefined) {
    // The garbage collector removes the children of what is gone.
    world.lastingFailures.forget(key);
    return done;
  }

  const observed = world.children(key);
  let applied: Applied;
  try {
    applied = isInvalid(egress)
      ? leftAlone(egress, observed)
      : await takeSteps(egress, observed, planChildren(egress, observed, settings), world, logger, signal);
  } catch (error) {
    if (!hasCode(error, "Conflict")) world.lastingFailures.interrupted(key);
    throw error;
  }
  const now = world.now();
  const { failures, hold } = applied;
  const failing = failures.map(({ child }) => child);
  const lasting = world.lastingFailures.seen(key, failing, Date.parse(now));
  const problems = [
    ...applied.problems,
    ...failures.flatMap(({ child, error: { message } }) =>
      lasting.has(child) ? { reason: "ChildRefused", message, isRetried: true } : [],
    ),
  ];
  // Others would wait for as long as it lasts.
  if (lasting.has("deployment")) world.upgradeTurns.giveBack(key);

  const { deployment, service } = applied.children;
  const seen = {
    ...{ deployment, service, problems, failure: failures[0]?.error.message, hold },
    ...{ gateways: world.gateways(key), gatewayReasons: world.gatewayReasons(key) },
    clients: world.clients(key),
    isOutside: (address: string) => world.isOutside(address),
    allowedNamespaces:
      allowedNamespaces(egress, world.namespaces()) ??
      (isInvalid(egress) ? egress.status?.allowedNamespaces : undefined),
  };
  const status = egressStatus(egress, seen, now);
  let conflict: KubeError | undefined;
  if (!isDeepStrictEqual(status, egress.status)) {
    conflict = await writeStatus(egress, status, world, logger, signal);
    logger.debug({ status, isWritten: conflict === undefined }, "status written");
  }
  const replicas = [observed.deployment, deployment].map((seen) => seen?.spec.replicas);
  // What another status says of the Egress was told with that one.
  const before = conflict === undefined ? egress.status : status;
  for (const announcement of announcements(before, status, applied.created, replicas)) {
    world.announce(egress, announcement);
  }
  if (conflict !== undefined) throw conflict;
  const error = failures[0]?.error ?? applied.refusal;
  if (error !== undefined) throw error;
  if (problems.length > 0) return requeueAfter(CONFLICT_RECHECK_MS);
  return hold === "UpgradeWaits" ? requeueAfter(TURN_RECHECK_MS) : done;
}

/** Children of an Egress that is not understood: nothing that serves is changed for what may be meant otherwise. */
function leftAlone(egress: InvalidEgress, observed: ObservedChildren): Applied {
  const own = Object.entries(observed).filter(
    ([, child]: [string, ObservedChild | undefined]) => child !== undefined && belongsTo(egress, child),
  );
  return {
    children: { ...NO_CHILDREN, ...Object.fromEntries(own) },
    created: [],
    problems: [],
    ...{ refusal: undefined, failures: [], hold: undefined },
  };
}

/**
 * What gateways need to start comes before the gateways; what does not need each other is done side by side. One child
 * that is refused does not hold up the others.
 */
async function takeSteps(
  egress: Egress,
  observed: ObservedChildren,
  steps: readonly Step[],
  world: EgressWorld,
  logger: Logger,
  signal: AbortSignal,
): Promise<Applied> {
  const sideBySide = (some: readonly Step[]) =>
    allEnded(some.map((step) => attemptStep(egress, observed, step, world, logger, signal)));
  const attempts = [
    ...(await sideBySide(steps.filter(({ child }) => child !== "deployment"))),
    ...(await sideBySide(steps.filter(({ child }) => child === "deployment"))),
  ];
  const changed = Object.fromEntries(attempts.map(({ step, result }) => [step.child, result]));
  const created = attempts.filter(({ step, problem, failure }) => {
    return step.action === "create" && problem === undefined && failure === undefined;
  });
  return {
    children: { ...observed, ...changed },
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

async function attemptStep(
  egress: Egress,
  observed: ObservedChildren,
  step: Step,
  world: EgressWorld,
  logger: Logger,
  signal: AbortSignal,
): Promise<Attempt> {
  const { child, action } = step;
  try {
    if (step.action === "upgrade") return await attemptUpgrade(egress, observed, step, world, logger, signal);
    const result = await takeStep(egress, step, world, signal);
    logger.info({ kind: CHILD_RESOURCES[child].kind, action }, "step taken");
    return { step, result };
  } catch (error) {
    if (error instanceof NameConflict) {
      return { step, result: undefined, problem: { reason: "NameConflict", message: error.message } };
    }
    if (!(error instanceof KubeError)) throw error;
    if (isOfTheServer(error)) return { step, result: observed[child], failure: error };
    if (!isAboutTheChild(error)) throw error;
    const problem = { reason: "ChildRefused", message: error.message } as const;
    return { step, result: observed[child], problem, refusal: error };
  }
}

/** An answer that is no, or a failure of what the API server asks about this object. */
function isAboutTheChild(error: KubeError): boolean {
  return error.status !== undefined && (!error.retryable || isOfWebhook(error));
}

/** What should pass by itself. */
function isOfTheServer(error: KubeError): boolean {
  return error.status === INTERNAL_ERROR && !isOfWebhook(error);
}

/**
 * Whether the API server could not ask a webhook. All else that it answers with 500, as while etcd elects a leader, is its
 * own trouble, which passes.
 *
 * @see https://github.com/kubernetes/kubernetes/blob/v1.35.0/staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go
 */
function isOfWebhook({ status, message }: KubeError): boolean {
  return status === INTERNAL_ERROR && message.includes("failed calling webhook");
}

/** While gateways wait for their turn their author has a say in how many they are, and how they will be replaced. */
async function attemptUpgrade(
  egress: Egress,
  { deployment }: ObservedChildren,
  step: Extract<Step, { action: "upgrade" }>,
  world: EgressWorld,
  logger: Logger,
  signal: AbortSignal,
): Promise<Attempt> {
  if (deployment === undefined) throw new TypeError("what is not there cannot be upgraded");
  const key = objectKey(egress);
  const isAvailable = deployment.status.availableReplicas > 0;
  const hold = isPaused(egress)
    ? "UpgradePaused"
    : world.upgradeTurns.take(key, isAvailable, templateOf(deployment))
      ? undefined
      : "UpgradeWaits";
  if (hold !== undefined) {
    const wanted = adjustment(step.manifest);
    const { replicas, strategy } = deployment.spec;
    const result = isDeepStrictEqual({ replicas, strategy }, wanted)
      ? deployment
      : await world.adjust(deployment, wanted, signal);
    const failure = hold === "UpgradeWaits" ? world.upgradeTurns.failure(key) : undefined;
    if (failure !== undefined) throw failure;
    return { step, result, hold };
  }
  try {
    const manifest = isAvailable ? asUpgrade(step.manifest) : step.manifest;
    const result = await world.apply("deployment", manifest, deployment, signal);
    logger.info({ kind: CHILD_RESOURCES.deployment.kind, action: step.action }, "step taken");
    return { step, result };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    const isRefused = isAboutTheChild(error);
    if (isRefused || isOfTheServer(error)) world.upgradeTurns.failed(key, error);
    // Else it may have been carried out, as where the answer is lost; then the next try is a conflict.
    if (isRefused) world.upgradeTurns.giveBack(key);
    throw error;
  }
}

async function takeStep(
  egress: Egress,
  step: Exclude<Step, { action: "upgrade" }>,
  world: EgressWorld,
  signal: AbortSignal,
): Promise<ObservedChild | undefined> {
  const { child } = step;
  switch (step.action) {
    case "await":
      return undefined;
    case "yield":
      throw new NameConflict(egress, child, step.observed);
    case "delete":
      await world.delete(child, step.observed, signal);
      return undefined;
    case "sweep": {
      const existing = await world.read(child, egress, signal);
      if (existing !== undefined && isOurs(egress, existing)) await world.delete(child, existing, signal);
      return undefined;
    }
    case "update":
      return world.apply(child, step.manifest, step.observed, signal);
    case "create": {
      // Without our label an object is in no store, and apply would take it over.
      try {
        return await world.create(child, step.manifest, signal);
      } catch (error) {
        if (!hasCode(error, "Conflict")) throw error;
      }
      const existing = await world.read(child, egress, signal);
      if (existing !== undefined && !isOurs(egress, existing))
        throw new NameConflict(egress, child, existing);
      // Of an earlier attempt whose answer was lost.
      if (existing !== undefined && isAsWanted(existing, step.manifest)) return existing;
      return world.apply(child, step.manifest, existing, signal);
    }
  }
}

/** @returns the Conflict, where the Egress is no longer the one that was looked at: look again */
async function writeStatus(
  egress: StoredEgress,
  status: EgressStatus,
  world: EgressWorld,
  logger: Logger,
  signal: AbortSignal,
): Promise<KubeError | undefined> {
  try {
    await world.writeStatus(egress, status, signal);
    return undefined;
  } catch (error) {
    if (hasCode(error, "Conflict")) return error;
    // A rule over the whole object is judged again with each status; the event tells what the status cannot.
    if (isInvalid(egress) && hasCode(error, "Invalid")) {
      logger.warn(
        { err: error, invalid: egress.invalid },
        "cannot understand the Egress, and its status was refused",
      );
      return undefined;
    }
    // Deleted meanwhile, by which there is nothing left to say.
    if (!hasCode(error, "NotFound")) throw error;
    return undefined;
  }
}
