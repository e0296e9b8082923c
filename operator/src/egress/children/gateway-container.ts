/** The container `egress` of a gateway pod: what the template says, completed with what a gateway needs. */

import {
  EGRESS_CONTAINER,
  type Egress,
  FOU_PORT,
  GatewayEnvironment,
  HEALTH_PORTS,
  HEARTBEAT_PORT,
} from "@egress-nat/crds";
import { LOG_LEVEL } from "@egress-nat/program";
import type { V1Container, V1EnvVar, V1SecurityContext } from "@kubernetes/client-node";

const VARIABLES = GatewayEnvironment.keyof().enum;

/** What the operator tells every gateway. */
export interface GatewaySettings {
  readonly image: string;
  readonly imagePullPolicy: "Always" | "IfNotPresent" | "Never";
  /** Where they find the networks of the cluster, which they never reach for a client. */
  readonly clusterRangesNamespace: string;
  readonly logLevel: string;
}

/** Requests, no limits: a throttled gateway drops packets of all its clients. */
const RESOURCES = { requests: { cpu: "100m", memory: "128Mi" } };

/**
 * NET_ADMIN has no effect without uid 0: links, routes, nftables, conntrack. NET_RAW, because iptables and its match `set` ask
 * the kernel by a raw socket: a pod keeps its capabilities, and `natBackend` may change while it runs.
 */
const SECURITY_CONTEXT = {
  runAsUser: 0,
  runAsNonRoot: false,
  privileged: false,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
  seccompProfile: { type: "RuntimeDefault" },
} satisfies V1SecurityContext;

const PORTS = [
  { name: "fou", containerPort: FOU_PORT, protocol: "UDP" },
  { name: "heartbeat", containerPort: HEARTBEAT_PORT, protocol: "UDP" },
  { name: "health", containerPort: HEALTH_PORTS.egressPod, protocol: "TCP" },
] satisfies V1Container["ports"];

/** One that does not answer may not hear that it is to end either. */
const RESTART_GRACE_SECONDS = 5;

/**
 * A gateway that cannot serve leaves the Service within seconds, and its flows break. One that only does not answer, on a
 * node that is short of processor time, forwards all the same: it leaves after half a minute, and is restarted after two. Its
 * kernel goes on meanwhile, so that nothing waits for the end of its flows, as when the pod itself ends.
 */
const PROBES = {
  // A start may take a minute on a node that is short of CPU.
  startupProbe: {
    httpGet: { path: "/healthz", port: "health" },
    periodSeconds: 2,
    timeoutSeconds: 5,
    failureThreshold: 60,
    terminationGracePeriodSeconds: RESTART_GRACE_SECONDS,
  },
  readinessProbe: {
    httpGet: { path: "/readyz", port: "health" },
    periodSeconds: 2,
    timeoutSeconds: 10,
    failureThreshold: 3,
  },
  // As kubeadm's own: a node that is short of processor time is not helped by restarts.
  livenessProbe: {
    httpGet: { path: "/healthz", port: "health" },
    periodSeconds: 10,
    timeoutSeconds: 15,
    failureThreshold: 8,
    terminationGracePeriodSeconds: RESTART_GRACE_SECONDS,
  },
} satisfies Pick<V1Container, "livenessProbe" | "readinessProbe" | "startupProbe">;

/** What the operator tells the gateways of one Egress. */
export interface ContainerSettings extends GatewaySettings {
  /** For how long the pod's grace period lets a gateway serve its flows. */
  readonly drainSeconds: number;
}

/**
 * The template's fields win, but for environment variables and ports of the gateway's own names.
 *
 * @param template the container of that name in the template, if there is one
 */
export function gatewayContainer(
  egress: Egress,
  template: Partial<V1Container> | undefined,
  settings: ContainerSettings,
): V1Container {
  return {
    image: settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    resources: RESOURCES,
    ...PROBES,
    ...template,
    name: EGRESS_CONTAINER,
    env: mergeByName(template?.env, environment(egress, settings)),
    ports: mergeByName(template?.ports, PORTS),
    securityContext: { ...SECURITY_CONTEXT, ...template?.securityContext },
  };
}

function environment(egress: Egress, settings: ContainerSettings): V1EnvVar[] {
  return [
    { name: VARIABLES.EGRESS_NAMESPACE, value: egress.metadata.namespace },
    { name: VARIABLES.EGRESS_NAME, value: egress.metadata.name },
    fromField("POD_NAME", "metadata.name"),
    fromField(VARIABLES.POD_IPS, "status.podIPs"),
    fromField("NODE_NAME", "spec.nodeName"),
    { name: VARIABLES.CLUSTER_RANGES_NAMESPACE, value: settings.clusterRangesNamespace },
    { name: VARIABLES.DRAIN_TIMEOUT_SECONDS, value: `${settings.drainSeconds}` },
    { name: LOG_LEVEL, value: settings.logLevel },
  ];
}

function fromField(name: string, fieldPath: string): V1EnvVar {
  return { name, valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } };
}

function mergeByName<T extends { name?: string }>(theirs: readonly T[] | undefined, ours: readonly T[]): T[] {
  const names = new Set(ours.map(({ name }) => name));
  return [...(theirs ?? []).filter(({ name }) => !names.has(name)), ...ours];
}
