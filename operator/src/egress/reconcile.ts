/** Makes the children and the status of one Egress what they should be. */

import { isDeepStrictEqual } from "node:util";
import type { Egress, EgressStatus } from "@egress-nat/crds";
import { done, type Endpoint, hasCode, KubeError, type Outcome, requeueAfter } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { type Announcement, announcements } from "./announcements.ts";
import { CHILD_RESOURCES, type ChildKind, type GatewaySettings, type Manifest } from "./children/index.ts";
import { allowedNamespaces, type NamespaceHead } from "./namespaces.ts";
import type { ObservedChild, ObservedChildren } from "./observed.ts";
import { belongsTo, isAsWanted, planChildren, type Step } from "./plan.ts";
import { egressStatus, type Problem } from "./status.ts";

/** An object in the way has no label of ours, so no watch tells when it is gone. */
const CONFLICT_RECHECK_MS = 30_000;

const INTERNAL_ERROR = 500;

/** What the reconciler sees and does; all of it is injected. */
export interface EgressWorld {
  egress(key: string): Egress | undefined;
  /** The children that bear the Egress's label, as last seen. */
  children(key: string): ObservedChildren;
  /** The pods behind its Service. */
  gateways(key: string): readonly Endpoint[];
  /** How many clients it has. */
  clients(key: string): number;
  /** Whether an address is in none of the cluster's networks that are known. */
  isOutside(address: string): boolean;
  namespaces(): readonly NamespaceHead[];
  /** @returns the object of that name, whoever it belongs to; undefined where there is none */
  read<K extends ChildKind>(child: K, egress: Egress, signal: AbortSignal): Promise<ObservedChildren[K]>;
  /** Server-side apply of what is not there. @throws KubeError Conflict where something of that name is */
  create<K extends ChildKind>(
    child: K,
    manifest: Manifest,
    signal: AbortSignal,
  ): Promise<NonNullable<ObservedChildren[K]>>;
  /** Server-side apply. @param force whether fields of other managers are taken */
  apply<K extends ChildKind>(
    child: K,
    manifest: Manifest,
    force: boolean,
    signal: AbortSignal,
  ): Promise<NonNullable<ObservedChildren[K]>>;
  delete(child: ChildKind, observed: ObservedChild, signal: AbortSignal): Promise<void>;
  writeStatus(egress: Egress, status: EgressStatus, signal: AbortSignal): Promise<void>;
  announce(egress: Egress, announcement: Announcement): void;
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
}

/** What became of one of them. */
interface Attempt {
  readonly step: Step;
  readonly result: ObservedChild | undefined;
  readonly problem?: Problem;
  readonly refusal?: KubeError;
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
  // The garbage collector removes the children of what is gone.
  if (egress === undefined || egress.metadata.deletionTimestamp !== undefined) return done;

  const observed = world.children(key);
  const steps = planChildren(egress, observed, settings);
  const applied = await takeSteps(egress, observed, steps, world, logger, signal);

  const { deployment, service } = applied.children;
  const seen = {
    ...{ deployment, service, problems: applied.problems },
    ...{ gateways: world.gateways(key), clients: world.clients(key) },
    isOutside: (address: string) => world.isOutside(address),
    allowedNamespaces: allowedNamespaces(egress, world.namespaces()),
  };
  const status = egressStatus(egress, seen, world.now());
  if (!isDeepStrictEqual(status, egress.status)) {
    await writeStatus(egress, status, world, signal);
    logger.debug({ status }, "status written");
  }
  const replicas = [observed.deployment, deployment].map((seen) => seen?.spec.replicas);
  for (const announcement of announcements(egress.status, status, applied.created, replicas)) {
    world.announce(egress, announcement);
  }
  if (applied.refusal !== undefined) throw applied.refusal;
  return applied.problems.length > 0 ? requeueAfter(CONFLICT_RECHECK_MS) : done;
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
  const created = attempts.filter(({ step, problem }) => step.action === "create" && problem === undefined);
  return {
    children: { ...observed, ...changed },
    created: created.map(({ step }) => CHILD_RESOURCES[step.child].kind),
    problems: attempts.flatMap(({ problem }) => problem ?? []),
    refusal: attempts.find(({ refusal }) => refusal !== undefined)?.refusal,
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
    const result = await takeStep(egress, step, world, signal);
    logger.info({ kind: CHILD_RESOURCES[child].kind, action }, "step taken");
    return { step, result };
  } catch (error) {
    if (error instanceof NameConflict) {
      return { step, result: undefined, problem: { reason: "NameConflict", message: error.message } };
    }
    if (!(error instanceof KubeError) || !isAboutTheChild(error)) throw error;
    const problem = { reason: "ChildRefused", message: error.message } as const;
    return { step, result: observed[child], problem, refusal: error };
  }
}

/** An answer that is no, or a failure of what the API server asks about this object: a webhook, most of the time. */
function isAboutTheChild({ status, retryable }: KubeError): boolean {
  return status !== undefined && (!retryable || status === INTERNAL_ERROR);
}

async function takeStep(
  egress: Egress,
  step: Step,
  world: EgressWorld,
  signal: AbortSignal,
): Promise<ObservedChild | undefined> {
  const { child } = step;
  switch (step.action) {
    case "await":
      return undefined;
    case "yield":
      throw new NameConflict(child, step.observed);
    case "delete":
      await world.delete(child, step.observed, signal);
      return undefined;
    case "sweep": {
      const existing = await world.read(child, egress, signal);
      if (existing !== undefined && belongsTo(egress, existing)) await world.delete(child, existing, signal);
      return undefined;
    }
    case "update":
      return world.apply(child, step.manifest, true, signal);
    case "create": {
      // Without our label an object is in no store, and apply would take it over.
      try {
        return await world.create(child, step.manifest, signal);
      } catch (error) {
        if (!hasCode(error, "Conflict")) throw error;
      }
      const existing = await world.read(child, egress, signal);
      if (existing !== undefined && !belongsTo(egress, existing)) throw new NameConflict(child, existing);
      // Of an earlier attempt whose answer was lost.
      if (existing !== undefined && isAsWanted(existing, step.manifest)) return existing;
      return world.apply(child, step.manifest, existing !== undefined, signal);
    }
  }
}

async function writeStatus(
  egress: Egress,
  status: EgressStatus,
  world: EgressWorld,
  signal: AbortSignal,
): Promise<void> {
  try {
    await world.writeStatus(egress, status, signal);
  } catch (error) {
    // Deleted meanwhile, by which there is nothing left to say.
    if (!hasCode(error, "NotFound")) throw error;
  }
}

/** An object that the Egress needs has a name that is taken. */
class NameConflict extends Error {
  constructor(child: ChildKind, observed: ObservedChild) {
    const { name, namespace } = observed.metadata;
    const { kind } = CHILD_RESOURCES[child];
    const owner = observed.metadata.ownerReferences?.find(({ controller }) => controller);
    const holder =
      owner === undefined ? "nobody's child" : `a child of ${owner.kind} ${owner.name} (${owner.uid})`;
    super(
      `${kind} ${namespace}/${name} exists, and is ${holder}: it is left as it is; ` +
        `rename or delete it, or give the Egress another name`,
    );
    this.name = "NameConflict";
  }
}
