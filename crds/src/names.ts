/** Names that two programs share stand here, once: API group, labels, annotations, ports and paths. */

import { createHash } from "node:crypto";

export const API_GROUP = "coil.cybozu.com";
export const API_VERSION = "v2";

/** A pod opts in with `egress.coil.cybozu.com/<namespace of the Egress>: <name>[,<name>...]`. */
export const CLIENT_ANNOTATION_PREFIX = "egress.coil.cybozu.com/";

/** Set to "true" on gateway pods by the operator: the node agent then allows forwarding in their network namespace. */
export const GATEWAY_ANNOTATION = "coil.cybozu.com/egress-gateway";

/** Set to "true" on an Egress by its author: an upgrade of the product does not replace its gateways until it is gone. */
export const PAUSE_ROLLOUT_ANNOTATION = "coil.cybozu.com/pause-rollout";

/** On everything that belongs to one Egress; the value is the Egress's name ({@link labelValue}). */
export const EGRESS_LABEL = "coil.cybozu.com/egress";

/** On EgressClientSlices: the node whose agent writes them ({@link labelValue}). */
export const NODE_LABEL = "coil.cybozu.com/node";

/** The container of a gateway pod that the operator completes. */
export const EGRESS_CONTAINER = "egress";

/** Of the operator's Deployment and account, of the Lease by which one leads, of the field manager of what it applies. */
export const OPERATOR = "egress-nat-operator";

/** Of the node agents' DaemonSet and account, and of the field manager of slices. */
export const NODE_AGENT = "egress-nat-node-agent";

/** Name of the ConfigMap in which the operator publishes the cluster's own networks, in its own namespace. */
export const CLUSTER_RANGES_CONFIG_MAP = "egress-nat-cluster-ranges";

/** UDP port of the FoU tunnel, on clients and gateways. */
export const FOU_PORT = 5555;

/** UDP port on which a gateway answers the node agents' heartbeat. */
export const HEARTBEAT_PORT = 5556;

/** What an agent asks a gateway in a heartbeat: it has a value while the gateway has lost its way out (`spec.uplinkProbe`). */
export const UPLINK_LOST_KEY = "uplink";

/** How the reason of a gateway begins that is not ready because it has lost its way out. */
export const UPLINK_REASON = "uplink: ";

/** What gateways ask each other in a heartbeat: it has a value while the way out of a family works. */
export const UPLINK_WORKS_KEYS = { ipv4: "uplink-ipv4", ipv6: "uplink-ipv6" } as const;

/** TCP ports of /healthz, /readyz and /metrics. The node agent shares its node's network. */
export const HEALTH_PORTS = { operator: 8080, egressPod: 8080, nodeAgent: 9785 } as const;

/** Node-local state of the node agent and the CNI plugin; gone after a reboot, as the pods are. */
export const RUN_DIRECTORY = "/run/egress-nat";

/** Node-local state that must outlive a reboot, as what gateways trust does. */
export const STATE_DIRECTORY = "/var/lib/egress-nat";

/** Unix socket on which the node agent serves the CNI plugin. */
export const AGENT_SOCKET = `${RUN_DIRECTORY}/agent.sock`;

/** File name of the CNI plugin in the CNI binary directory, and its `type` in a conflist. */
export const CNI_PLUGIN = "egress-nat";

const MAX_LABEL_VALUE_LENGTH = 63;

/**
 * A label value for a name that may be longer than a label value may be.
 *
 * @param name an object's name (DNS subdomain, at most 253 characters)
 * @returns the name itself, or its beginning and a hash where it is longer than 63 characters
 */
export function labelValue(name: string): string {
  if (name.length <= MAX_LABEL_VALUE_LENGTH) return name;
  const digest = createHash("sha256").update(name).digest("hex").slice(0, 10);
  const head = name.slice(0, MAX_LABEL_VALUE_LENGTH - digest.length - 1).replace(/[-.]+$/, "");
  return `${head}-${digest}`;
}

/**
 * The name of the EgressClientSlice of one Egress and one node. No two pairs share one: an Egress's name has no dot. The
 * chart's ValidatingAdmissionPolicy says the same in CEL.
 */
export function sliceName(egress: string, node: string): string {
  return `${egress}.${node}`;
}
