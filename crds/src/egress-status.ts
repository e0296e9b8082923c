/** What the operator says of an Egress. */

import { z } from "zod";
import { Address } from "./address.ts";

/** A condition in the style of https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Condition. */
export const Condition = z.object({
  type: z.string().describe("Available, Progressing, Degraded, Ready, Reconciling or Stalled."),
  status: z.enum(["True", "False", "Unknown"]).describe("Whether the condition holds."),
  reason: z.string().describe("The cause, in one CamelCase word."),
  message: z.string().describe("The cause as a sentence, with the remedy if there is one."),
  lastTransitionTime: z.iso.datetime({ offset: true }).describe("When the status last changed."),
  observedGeneration: z
    .int()
    .min(0)
    .describe("The generation of the Egress that this condition describes.")
    .exactOptional(),
});
export type Condition = z.infer<typeof Condition>;

/** One gateway pod as the Service before it sees it, and as node agents that it does not answer report it. */
export const GatewayStatus = z.object({
  name: z.string().describe("Name of the pod."),
  node: z.string().describe("Name of its node.").exactOptional(),
  addresses: z
    .array(z.string())
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe("Addresses of the pod. Destinations see one of them, unless the network translates it."),
  state: z
    .enum(["Ready", "Suspect", "Draining", "Down"])
    .describe(
      "Ready: it takes new flows. Suspect: it is ready, but does not answer the heartbeats of a node agent, which gives " +
        "new flows to others. Draining: it is being terminated, and still serves. Down: it takes no " +
        "new flows, or nothing comes back through the tunnel of a node agent.",
    ),
  since: z.iso.datetime({ offset: true }).describe("When its state last changed.").exactOptional(),
  reason: z
    .string()
    .describe(
      "Why it takes no new flows: in its own words, or that it has given none for a minute, or what the node agent misses that " +
        "`reportedBy` names. Absent if the operator has not asked it yet.",
    )
    .exactOptional(),
  reportedBy: z
    .string()
    .describe("Name of the node whose agent it does not answer. Absent if the state is that of the pod.")
    .exactOptional(),
});
export type GatewayStatus = z.infer<typeof GatewayStatus>;

export const EgressStatus = z
  .object({
    observedGeneration: z
      .int()
      .min(0)
      .describe("The generation of the Egress that this status describes.")
      .exactOptional(),
    conditions: z
      .array(Condition)
      .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
      .describe(
        "Available: a gateway serves. Progressing: gateways are being created or replaced. Degraded: something " +
          "needs attention, and the message says what. For tools that wait (kstatus) there are Ready and, only while " +
          "they hold, Reconciling and Stalled.",
      )
      .exactOptional(),
    replicas: z.int32().min(0).describe("Number of gateway pods.").exactOptional(),
    readyReplicas: z.int32().min(0).describe("Number of gateway pods that are ready.").exactOptional(),
    clients: z.int32().min(0).describe("Number of pods that are clients.").exactOptional(),
    gateways: z
      .array(GatewayStatus)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe(
        "The gateway pods, as the Service in front of them sees them, and as node agents report those that do not answer.",
      )
      .exactOptional(),
    gatewayStates: z
      .string()
      .describe(
        "How many gateways are in which state, as `kubectl get -o wide` shows it: `2 Ready, 1 Down: uplink`.",
      )
      .exactOptional(),
    selector: z.string().describe("Label selector of the gateway pods, for autoscalers.").exactOptional(),
    serviceIPs: z
      .array(Address)
      .max(2)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe(
        "Cluster IPs of the Service in front of the gateways. Clients send to them with gatewaySelection Service.",
      )
      .exactOptional(),
    serviceUID: z
      .string()
      .describe("UID of that Service. Only EndpointSlices of this Service name gateways.")
      .exactOptional(),
    allowedNamespaces: z
      .array(z.string())
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe("The names of the namespaces that spec.allowedNamespaces selects. Absent if that is not set.")
      .exactOptional(),
  })
  .describe("What the operator has seen.");
export type EgressStatus = z.infer<typeof EgressStatus>;
