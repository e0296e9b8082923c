/** The Deployment of the gateways. */

import { EGRESS_CONTAINER, type Egress, GATEWAY_ANNOTATION, labelValue } from "@egress-nat/crds";
import type { V1DeploymentSpec, V1LabelSelector, V1PodSpec } from "@kubernetes/client-node";
import { serviceAccountName } from "./access.ts";
import { type GatewaySettings, gatewayContainer } from "./gateway-container.ts";
import { CHILD_RESOURCES, gatewayLabels, head, type Manifest } from "./manifest.ts";

/** Kubernetes' own limit, said aloud: a field that the operator owns can be taken back, a defaulted one cannot. */
const ROOM = "25%";

/** After the flows: to end the process, and where the node is slow to begin. */
const TERMINATION_MARGIN_SECONDS = 15;

export function deployment(egress: Egress, settings: GatewaySettings): Manifest {
  const { metadata, spec: podSpec } = egress.spec.template ?? {};
  const spec = {
    replicas: egress.spec.replicas,
    strategy: strategy(egress),
    selector: { matchLabels: { ...gatewayLabels(egress) } },
    template: {
      metadata: {
        labels: { ...coilLabels(egress), ...metadata?.labels, ...gatewayLabels(egress) },
        annotations: { ...metadata?.annotations, [GATEWAY_ANNOTATION]: "true" },
      },
      spec: gatewayPod(egress, (podSpec ?? {}) as Partial<V1PodSpec>, settings),
    },
  } satisfies V1DeploymentSpec;
  return { ...head(CHILD_RESOURCES.deployment, egress), spec };
}

/** By default no gateway ends before a new one is ready. Kubernetes refuses limits of which both are 0. */
function strategy(egress: Egress) {
  const { type = "RollingUpdate", rollingUpdate = {} } = egress.spec.strategy ?? {};
  if (type === "Recreate") return { type };
  const { maxSurge = ROOM } = rollingUpdate;
  const { maxUnavailable = /^0+%?$/.test(`${maxSurge}`) ? ROOM : 0 } = rollingUpdate;
  return { type, rollingUpdate: { maxSurge, maxUnavailable } };
}

/** As coil labels its gateways: NetworkPolicies, affinities and scrapers written for it select by them. */
function coilLabels({ metadata: { name } }: Egress): Readonly<Record<string, string>> {
  return {
    "app.kubernetes.io/name": "coil",
    "app.kubernetes.io/component": "egress",
    "app.kubernetes.io/instance": labelValue(name),
  };
}

/** The API server has checked the template against Kubernetes' own schema; what it says is kept. */
function gatewayPod(egress: Egress, template: Partial<V1PodSpec>, settings: GatewaySettings): V1PodSpec {
  const containers = template.containers ?? [];
  const gateway = containers.find(({ name }) => name === EGRESS_CONTAINER);
  const { terminationGracePeriodSeconds = egress.spec.drainTimeoutSeconds + TERMINATION_MARGIN_SECONDS } =
    template;
  const marginSeconds = Math.min(TERMINATION_MARGIN_SECONDS, Math.ceil(terminationGracePeriodSeconds / 2));
  // Kubernetes makes a second of one that is negative.
  const drainSeconds = Math.max(0, terminationGracePeriodSeconds - marginSeconds);
  return {
    ...spread({ matchLabels: { ...gatewayLabels(egress) } }),
    terminationGracePeriodSeconds,
    enableServiceLinks: false,
    ...template,
    nodeSelector: { "kubernetes.io/os": "linux", ...template.nodeSelector },
    serviceAccountName: serviceAccountName(egress),
    containers: [
      gatewayContainer(egress, gateway, { ...settings, drainSeconds }),
      ...containers.filter(({ name }) => name !== EGRESS_CONTAINER),
    ],
  };
}

/** Those of one template: else gateways that a rollout is about to take away count, and those that come share a node. */
const OF_ONE_TEMPLATE = { matchLabelKeys: ["pod-template-hash"] };

/**
 * One node or zone that is lost takes as few gateways with it as can be. Zones are not a second spread constraint: the
 * scheduler leaves nodes without the label of one out of account for all of them, and many clusters have no zones.
 */
function spread(labelSelector: V1LabelSelector): Partial<V1PodSpec> {
  return {
    topologySpreadConstraints: [
      {
        topologyKey: "kubernetes.io/hostname",
        maxSkew: 1,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector,
        ...OF_ONE_TEMPLATE,
      },
    ],
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 100,
            podAffinityTerm: {
              topologyKey: "topology.kubernetes.io/zone",
              labelSelector,
              ...OF_ONE_TEMPLATE,
            },
          },
        ],
      },
    },
  };
}
