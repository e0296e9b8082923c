/** The status of an Egress, from what is seen of its children. */

import { type Family, familiesOf, familyName } from "@egress-nat/addresses";
import {
  type Condition,
  type Egress,
  type EgressStatus,
  type GatewayStatus,
  type InvalidEgress,
  isInvalid,
  PAUSE_ROLLOUT_ANNOTATION,
} from "@egress-nat/crds";
import { gatewayLabels } from "./children/index.ts";
import { type GatewaysSeen, gatewayStates, gatewayStatuses } from "./gateways.ts";
import type { ObservedDeployment, ObservedService } from "./observed.ts";
import { isObserved } from "./rollout.ts";
import { type Finding, type Problem, standardConditions } from "./standard-conditions.ts";

/** An Egress as the API has it, whether this release understands it or not. */
export type StoredEgress = Egress | InvalidEgress;

/** Why gateways are not upgraded yet. */
export type Hold = "UpgradeWaits" | "UpgradePaused";

const HOLDS: Readonly<Record<Hold, string>> = {
  UpgradeWaits: "the upgrade of its gateways to this release waits for those of other Egresses",
  UpgradePaused: `the upgrade of its gateways to this release is paused by the annotation ${PAUSE_ROLLOUT_ANNOTATION}`,
};

/** What a status is made of. Children that belong to somebody else are not among them. */
export interface StatusInput extends GatewaysSeen {
  readonly deployment: ObservedDeployment | undefined;
  readonly service: ObservedService | undefined;
  readonly problems: readonly Problem[];
  /** Of the API server, at a child, that should pass by itself: what is seen of the children is not what is wanted. */
  readonly failure: string | undefined;
  readonly hold: Hold | undefined;
  /** How many. */
  readonly clients: number;
  /** Whether an address is in none of the cluster's networks that are known. */
  readonly isOutside: (address: string) => boolean;
  /** Names, sorted; undefined where the Egress allows every namespace. */
  readonly allowedNamespaces: readonly string[] | undefined;
}

/**
 * @param egress the Egress; the times of its present conditions are kept where their status does. Of one that is not
 *   understood its gateways are told as they are
 * @param now RFC 3339
 */
export function egressStatus(egress: StoredEgress, input: StatusInput, now: string): EgressStatus {
  const { deployment, service, clients, allowedNamespaces } = input;
  const gateways = gatewayStatuses(input, egress.status?.gateways ?? [], now);
  const problems = problemsOf(egress, input, gateways);
  const findings = {
    Available: available(egress, input),
    Progressing: progressing(egress, input),
    Degraded: degraded(problems),
  };
  const standard = standardConditions(findings.Available, findings.Progressing, problems);
  const observedGeneration = generationSeen(egress, input);
  return {
    ...(observedGeneration !== undefined && { observedGeneration }),
    conditions: Object.entries({ ...findings, ...standard }).map(([type, finding]) =>
      condition(egress, type, finding, observedGeneration, now),
    ),
    replicas: deployment?.status.replicas ?? 0,
    readyReplicas: deployment?.status.readyReplicas ?? 0,
    clients,
    gateways: [...gateways],
    ...(gateways.length > 0 && { gatewayStates: gatewayStates(gateways) }),
    selector: Object.entries(gatewayLabels(egress))
      .map(([label, value]) => `${label}=${value}`)
      .join(","),
    serviceIPs: serviceIPs(service),
    ...(service && { serviceUID: service.metadata.uid }),
    ...(allowedNamespaces && { allowedNamespaces: [...allowedNamespaces] }),
  };
}

/** Absent until an Egress was understood once: until then readers do not trust its list of allowed namespaces. */
function generationSeen(egress: StoredEgress, { failure }: StatusInput): number | undefined {
  const before = egress.status?.observedGeneration;
  const isStill = failure !== undefined || (isInvalid(egress) && before === undefined);
  return isStill ? before : egress.metadata.generation;
}

/** "None" is a headless Service's, and a Service that is being made has no addresses yet. */
function serviceIPs(service: ObservedService | undefined): string[] {
  return service?.spec.clusterIPs.filter((address) => address !== "None") ?? [];
}

function available(egress: StoredEgress, { deployment, service, allowedNamespaces }: StatusInput): Finding {
  // Of an Egress that is not understood as many as were made.
  const wanted = isInvalid(egress) ? (deployment?.spec.replicas ?? 1) : egress.spec.replicas;
  const serving = deployment?.status.availableReplicas ?? 0;
  const unserved = unservedFamilies(egress, service);
  const message = [
    `${serving} of ${wanted} gateways are available`,
    ...unserved
      .map(familyName)
      .map((name) => `destinations of ${name} are not served, because the Service has no ${name} address`),
    ...(allowedNamespaces?.length === 0
      ? [
          "spec.allowedNamespaces selects no namespace, so no pod may be a client: label a namespace, or change it",
        ]
      : []),
  ].join("; ");
  if (serving > 0 && serviceIPs(service).length === 0) {
    return {
      status: "False",
      reason: "NoServiceAddress",
      message: `${message}; clients reach none of them, because their Service has no address`,
    };
  }
  if (serving > 0) return { status: "True", reason: "GatewaysAvailable", message };
  if (wanted > 0) return { status: "False", reason: "NoGateway", message };
  return {
    status: "False",
    reason: "ScaledToZero",
    message: "spec.replicas is 0: clients reach no destination",
  };
}

function progressing(egress: StoredEgress, { deployment, failure, hold, problems }: StatusInput): Finding {
  if (isInvalid(egress)) {
    return {
      status: "False",
      reason: "InvalidSpec",
      message: "the operator changes nothing until it understands spec",
    };
  }
  if (failure !== undefined) {
    const message = `the API server failed to apply a change, and the operator tries again: ${failure}`;
    return { status: "True", reason: "Retrying", message };
  }
  const wanted = egress.spec.replicas;
  if (deployment === undefined) {
    return { status: "True", reason: "Creating", message: "the gateways are about to be created" };
  }
  const { status } = deployment;
  const isComplete =
    status.updatedReplicas === wanted && status.replicas === wanted && status.availableReplicas === wanted;
  if (isObserved(deployment) && isComplete) {
    const refusal = problems.find(({ reason }) => reason === "ChildRefused");
    if (refusal !== undefined) {
      const message = `all ${wanted} gateways are available, and a change was refused: ${refusal.message}`;
      return { status: "False", reason: refusal.reason, message };
    }
    const message = `all ${wanted} gateways are up to date and available`;
    return hold === undefined
      ? { status: "False", reason: "Complete", message }
      : { status: "False", reason: hold, message: `all ${wanted} gateways are available: ${HOLDS[hold]}` };
  }
  const message = `${status.updatedReplicas} of ${wanted} gateways are up to date, ${status.availableReplicas} available`;
  return { status: "True", reason: "RollingOut", message };
}

function problemsOf(
  egress: StoredEgress,
  input: StatusInput,
  gateways: readonly GatewayStatus[],
): readonly Problem[] {
  return [
    ...specProblems(egress),
    ...input.problems,
    ...deploymentProblems(input.deployment),
    ...familyProblems(egress, input),
    ...gatewayProblems(gateways),
    ...rangeProblems(input),
  ];
}

function degraded(problems: readonly Problem[]): Finding {
  const [first] = problems;
  if (first === undefined)
    return { status: "False", reason: "AsExpected", message: "nothing needs attention" };
  const message = problems.map((problem) => problem.message).join("; ");
  return { status: "True", reason: first.reason, message };
}

/** Gateways of one Egress mostly have one reason. What one node misses makes no condition: it may be the node's fault. */
function gatewayProblems(gateways: readonly GatewayStatus[]): readonly Problem[] {
  const told = gateways.filter(({ reason, reportedBy }) => reason !== undefined && reportedBy === undefined);
  return [...Map.groupBy(told, ({ reason }) => reason)].map(([reason, those]) => ({
    reason: "GatewayNotReady",
    message: `${those.map(({ name }) => name).join(", ")} ${those.length === 1 ? "is" : "are"} not ready: ${reason}`,
  }));
}

function specProblems(egress: StoredEgress): readonly Problem[] {
  if (!isInvalid(egress)) return [];
  const { namespace, name } = egress.metadata;
  const message =
    `Egress ${namespace}/${name} is not understood by this release: ${egress.invalid}: correct it ` +
    `(kubectl edit egress -n ${namespace} ${name}), or use the release that it was written for; until then its ` +
    "gateways and its clients go on as they are, and no new client starts";
  return [{ reason: "InvalidSpec", message }];
}

/** One of two families is enough: manifests are written for more than one cluster. */
function familyProblems(egress: StoredEgress, { service }: StatusInput): readonly Problem[] {
  const unserved = unservedFamilies(egress, service);
  if (unserved.length === 0 || unserved.length < familiesOf(egress.spec.destinations ?? []).size) return [];
  const message =
    `all destinations are ${unserved.map(familyName).join(" and ")}, but the Service has no such address: add destinations of ` +
    "the other family, or use a dual-stack cluster; a Service that is older than that needs both in its spec.ipFamilies";
  return [{ reason: "FamilyNotAvailable", message }];
}

/** Gateways are pods, and clients reach them at a Service: where these are, others are. */
function rangeProblems({ gateways, service, isOutside }: StatusInput): readonly Problem[] {
  const outside = [...gateways.flatMap(({ addresses }) => addresses), ...serviceIPs(service)].filter(
    isOutside,
  );
  if (outside.length === 0) return [];
  const message =
    `${outside.join(", ")} are in no known network of the cluster, so clients may reach other pods or Services there ` +
    "through a gateway: name the networks of pods and Services in clusterRanges of the chart";
  return [{ reason: "ClusterRangesIncomplete", message }];
}

function unservedFamilies({ spec }: StoredEgress, service: ObservedService | undefined): readonly Family[] {
  const served = familiesOf(serviceIPs(service));
  return served.size === 0
    ? []
    : [...familiesOf(spec.destinations ?? [])].filter((family) => !served.has(family));
}

/** FailedCreate is how a ReplicaSet says that its pods are refused: by Pod Security, a quota, a webhook. */
function deploymentProblems(deployment: ObservedDeployment | undefined): readonly Problem[] {
  return (deployment?.status.conditions ?? []).flatMap(({ type, status, reason, message }) => {
    if (type === "ReplicaFailure" && status === "True")
      return { reason, message: withRemedy(message, deployment) };
    if (type === "Progressing" && status === "False") return { reason, message };
    return [];
  });
}

function withRemedy(message: string, deployment: ObservedDeployment | undefined): string {
  if (!message.includes("PodSecurity")) return message;
  const namespace = deployment?.metadata.namespace;
  return (
    `${message}: gateways need NET_ADMIN and NET_RAW, so let the namespace run them: ` +
    `kubectl label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged --overwrite`
  );
}

function condition(
  egress: StoredEgress,
  type: string,
  finding: Finding,
  observedGeneration: number | undefined,
  now: string,
): Condition {
  const before = egress.status?.conditions?.find((present) => present.type === type);
  return {
    type,
    ...finding,
    lastTransitionTime: before?.status === finding.status ? before.lastTransitionTime : now,
    // `kubectl wait` goes by it before it looks at that of the status.
    ...(observedGeneration !== undefined && { observedGeneration }),
  };
}
