/** The status of an Egress, from what is seen of its children. */

import type { Condition, Egress, EgressStatus } from "@egress-nat/crds";
import type { Endpoint } from "@egress-nat/kube";
import { gatewayLabels } from "./children/index.ts";
import { gatewayStatuses } from "./gateways.ts";
import type { ObservedDeployment, ObservedService } from "./observed.ts";

/** Something that needs a person. */
export interface Problem {
  readonly reason: "NameConflict" | "ChildRefused" | "FamilyNotAvailable" | "ClusterRangesIncomplete";
  readonly message: string;
}

/** What a status is made of. Children that belong to somebody else are not among them. */
export interface StatusInput {
  readonly deployment: ObservedDeployment | undefined;
  readonly service: ObservedService | undefined;
  readonly problems: readonly Problem[];
  readonly gateways: readonly Endpoint[];
  /** How many. */
  readonly clients: number;
  /** Whether an address is in none of the cluster's networks that are known. */
  readonly isOutside: (address: string) => boolean;
  /** Names, sorted; undefined where the Egress allows every namespace. */
  readonly allowedNamespaces: readonly string[] | undefined;
}

type Finding = Pick<Condition, "status" | "reason" | "message">;

/**
 * @param egress the Egress; the times of its present conditions are kept where their status does
 * @param input what was seen
 * @param now RFC 3339
 */
export function egressStatus(egress: Egress, input: StatusInput, now: string): EgressStatus {
  const { deployment, service, gateways, clients, allowedNamespaces } = input;
  const findings = {
    Available: available(egress, input),
    Progressing: progressing(egress, deployment),
    Degraded: degraded(egress, input),
  };
  return {
    observedGeneration: egress.metadata.generation,
    conditions: Object.entries(findings).map(([type, finding]) => condition(egress, type, finding, now)),
    replicas: deployment?.status.replicas ?? 0,
    readyReplicas: deployment?.status.readyReplicas ?? 0,
    clients,
    gateways: gatewayStatuses(gateways),
    selector: Object.entries(gatewayLabels(egress))
      .map(([label, value]) => `${label}=${value}`)
      .join(","),
    serviceIPs: serviceIPs(service),
    ...(allowedNamespaces && { allowedNamespaces: [...allowedNamespaces] }),
  };
}

/** "None" is a headless Service's, and a Service that is being made has no addresses yet. */
function serviceIPs(service: ObservedService | undefined): string[] {
  return service?.spec.clusterIPs.filter((address) => address !== "None") ?? [];
}

function available(egress: Egress, { deployment, service }: StatusInput): Finding {
  const wanted = egress.spec.replicas;
  const serving = deployment?.status.availableReplicas ?? 0;
  const unserved = unservedFamilies(egress, service);
  const message = [
    `${serving} of ${wanted} gateways are available`,
    ...unserved.map(
      (family) => `destinations of ${family} are not served: Services of the cluster have no such addresses`,
    ),
  ].join("; ");
  if (serving > 0) return { status: "True", reason: "GatewaysAvailable", message };
  if (wanted > 0) return { status: "False", reason: "NoGateway", message };
  return {
    status: "False",
    reason: "ScaledToZero",
    message: "spec.replicas is 0: clients reach no destination",
  };
}

function progressing(egress: Egress, deployment: ObservedDeployment | undefined): Finding {
  const wanted = egress.spec.replicas;
  if (deployment === undefined) {
    return { status: "True", reason: "Creating", message: "the gateways are about to be made" };
  }
  const { metadata, status } = deployment;
  const isSeen = status.observedGeneration >= (metadata.generation ?? 0);
  const isComplete =
    status.updatedReplicas === wanted && status.replicas === wanted && status.availableReplicas === wanted;
  if (isSeen && isComplete) {
    return {
      status: "False",
      reason: "Complete",
      message: `all of ${wanted} gateways are as they should be`,
    };
  }
  const message = `${status.updatedReplicas} of ${wanted} gateways are up to date, ${status.availableReplicas} available`;
  return { status: "True", reason: "RollingOut", message };
}

function degraded(egress: Egress, input: StatusInput): Finding {
  const all: readonly Pick<Finding, "reason" | "message">[] = [
    ...input.problems,
    ...deploymentProblems(input.deployment),
    ...familyProblems(egress, input),
    ...rangeProblems(input),
  ];
  const [first] = all;
  if (first === undefined)
    return { status: "False", reason: "AsExpected", message: "nothing needs attention" };
  return { status: "True", reason: first.reason, message: all.map(({ message }) => message).join("; ") };
}

/** One of two families is enough: manifests are written for more than one cluster. */
function familyProblems(egress: Egress, { service }: StatusInput): readonly Problem[] {
  const unserved = unservedFamilies(egress, service);
  if (unserved.length === 0 || unserved.length < familiesOf(egress.spec.destinations).size) return [];
  const message =
    `all destinations are ${unserved.join(" and ")}, and Services of the cluster have no such addresses: ` +
    "add destinations of the other family, or use a dual-stack cluster";
  return [{ reason: "FamilyNotAvailable", message }];
}

/** Gateways are pods, and clients reach them at a Service: where these are, others are. */
function rangeProblems({ gateways, service, isOutside }: StatusInput): readonly Problem[] {
  const outside = [...gateways.flatMap(({ addresses }) => addresses), ...serviceIPs(service)].filter(
    isOutside,
  );
  if (outside.length === 0) return [];
  const message =
    `the networks of ${outside.join(", ")} are not known to be the cluster's, so clients may reach what else is there ` +
    "through a gateway: name the networks of pods and Services in clusterRanges of the chart";
  return [{ reason: "ClusterRangesIncomplete", message }];
}

function unservedFamilies(egress: Egress, service: ObservedService | undefined): readonly string[] {
  const served = familiesOf(serviceIPs(service));
  return served.size === 0
    ? []
    : [...familiesOf(egress.spec.destinations)].filter((family) => !served.has(family));
}

function familiesOf(addresses: readonly string[]): Set<"IPv4" | "IPv6"> {
  return new Set(addresses.map((address) => (address.includes(":") ? "IPv6" : "IPv4")));
}

/** FailedCreate is how a ReplicaSet says that its pods are refused: by Pod Security, a quota, a webhook. */
function deploymentProblems(deployment: ObservedDeployment | undefined) {
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
    `${message}: gateways need NET_ADMIN, so let the namespace run them: ` +
    `kubectl label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged --overwrite`
  );
}

function condition(egress: Egress, type: string, finding: Finding, now: string): Condition {
  const before = egress.status?.conditions?.find((present) => present.type === type);
  return {
    type,
    ...finding,
    lastTransitionTime: before?.status === finding.status ? before.lastTransitionTime : now,
    observedGeneration: egress.metadata.generation,
  };
}
