/** The Egress: one NAT gateway service in one namespace. */

import { z } from "zod";
import { Cidr, containsCidr, HostAddress } from "./address.ts";
import { EgressStatus } from "./egress-status.ts";
import { IntOrPercent, IntOrPortion } from "./int-or-percent.ts";
import { LabelSelector } from "./label-selector.ts";
import { EGRESS_LABEL } from "./names.ts";
import { ObjectMeta } from "./object-meta.ts";
import { PodTemplate } from "./pod-template.ts";
import { type Rule, withCel, withRules } from "./rule.ts";

/** Bounds the cost of CEL over the list; a gateway for more networks takes fewer, wider ones. */
const MAX_DESTINATIONS = 1000;
const MAX_EXCLUDED = 100;

/** Each costs a gateway a process. */
const MAX_TARGETS = 8;

/** Kubernetes waits as long for a pod whose node is drained: one day should do. */
const MAX_DRAIN_SECONDS = 86_400;

/** The longest timeout that a Service accepts: one day. */
const MAX_AFFINITY_SECONDS = 86_400;

const RollingUpdate = withRules(
  z.object({
    maxSurge: IntOrPercent.describe(
      "How many gateways may exist above spec.replicas during an update; the default is 25%.",
    ).exactOptional(),
    maxUnavailable: IntOrPortion.describe(
      "How many gateways may be unavailable during an update; the default is 0, or 25% if maxSurge is 0.",
    ).exactOptional(),
  }),
  {
    cel:
      "!has(self.maxSurge) || !has(self.maxUnavailable) || " +
      "!(string(self.maxSurge) + string(self.maxUnavailable)).matches('^[0%]*$')",
    holds: ({ maxSurge, maxUnavailable }) => !/^[0%]*$/.test(`${maxSurge}${maxUnavailable}`),
    message:
      "maxSurge and maxUnavailable cannot both be 0, because no gateway could be replaced: raise one of them",
  },
);

const Strategy = withRules(
  z.object({
    type: z
      .enum(["RollingUpdate", "Recreate"])
      .describe(
        "RollingUpdate replaces gateways one after another. Recreate ends all of them before it starts new ones.",
      )
      .exactOptional(),
    rollingUpdate: RollingUpdate.describe("Limits of a rolling update.").exactOptional(),
  }),
  {
    cel: "!has(self.rollingUpdate) || !has(self.type) || self.type == 'RollingUpdate'",
    holds: ({ type, rollingUpdate }) => rollingUpdate === undefined || type !== "Recreate",
    message: "rollingUpdate needs the type RollingUpdate: remove it, or change the type",
  },
);

const SessionAffinityConfig = z.object({
  clientIP: z
    .object({
      timeoutSeconds: z
        .int()
        .min(1)
        .max(MAX_AFFINITY_SECONDS)
        .describe(
          "For how long after the last new tunnel flow of a client the next one goes to the same gateway, in " +
            "seconds, at most one day. The default is 10800. Packets of an existing flow do not prolong it. " +
            "gatewaySelection Agent does not use it.",
        )
        .exactOptional(),
    })
    .describe("Settings of sessionAffinity ClientIP.")
    .exactOptional(),
});

const DisruptionBudget = withRules(
  z.object({
    minAvailable: IntOrPortion.describe(
      "How many gateways must stay available when nodes are drained; a count or a percentage.",
    ).exactOptional(),
    maxUnavailable: IntOrPortion.describe(
      "How many gateways may be unavailable when nodes are drained; a count or a percentage.",
    ).exactOptional(),
  }),
  {
    cel: "has(self.minAvailable) != has(self.maxUnavailable)",
    holds: ({ minAvailable, maxUnavailable }) =>
      (minAvailable === undefined) !== (maxUnavailable === undefined),
    message: "needs exactly one of minAvailable and maxUnavailable",
  },
);

const UplinkProbe = z.object({
  targets: z
    .array(HostAddress.describe("An IPv4 or IPv6 address, like 192.0.2.1 or 2001:db8::1."))
    .min(1)
    .max(MAX_TARGETS)
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe(
      "Addresses outside the cluster that answer echo requests (ping), for instance of the router, or of what clients " +
        "talk to. A gateway asks each of them twice a second, from its own address. It has lost its way out if all addresses " +
        "of one family have left three requests in a row unanswered. Link-local addresses are refused.",
    ),
});

/** What the author of an Egress asks for. */
export const EgressSpec = z
  .object({
    destinations: z
      .array(Cidr.describe("An IPv4 or IPv6 network, like 192.0.2.0/24 or ::/0."))
      .min(1)
      .max(MAX_DESTINATIONS)
      .describe(
        "Networks that clients reach through this Egress, in CIDR notation. Host bits are masked and duplicates " +
          "merged. If a client has several Egresses, the longest prefix wins, then the order in its annotation. " +
          "Networks of the cluster are never reached through an Egress. A destination outside the private ranges, " +
          "such as 0.0.0.0/0, does not cover those (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7): name " +
          "private networks as destinations of their own.",
      ),
    excludedDestinations: z
      .array(Cidr.describe("An IPv4 or IPv6 network, like 192.0.2.0/24 or 2001:db8::/32."))
      .max(MAX_EXCLUDED)
      .describe(
        "Networks that clients do not reach through this Egress, although a destination covers them. Clients reach " +
          "them through another Egress that names them, or else with the pod's own address. An Egress whose every " +
          "destination is covered by one of the exclusions is refused.",
      )
      .exactOptional(),
    allowedNamespaces: LabelSelector.describe(
      "Selects, by their labels, the namespaces whose pods may be clients. status.allowedNamespaces lists them. " +
        "If it is not set, pods of every namespace may be clients. A client whose namespace is no longer selected " +
        "loses its gateways at once, and fails closed.",
    ).exactOptional(),
    replicas: z
      .int32()
      .min(0)
      .default(1)
      .describe("Desired number of gateway pods. With 0 no packet passes, and clients fail closed."),
    strategy: Strategy.describe(
      "How gateway pods are replaced, as in a Deployment. By default no gateway ends before a new one is ready.",
    ).exactOptional(),
    template: PodTemplate.describe(
      "Template of the gateway pods. Every field is optional. The operator adds what a gateway needs to the " +
        "container named `egress`, and keeps other containers, volumes, scheduling, labels and annotations as they " +
        "are. https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-template-v1/",
    ).exactOptional(),
    sessionAffinity: z
      .enum(["ClientIP", "None"])
      .default("ClientIP")
      .describe(
        "Session affinity of the Service in front of the gateways. ClientIP keeps all flows of a client on one " +
          "gateway for each address family, so that they share one source address. None spreads the flows of one " +
          "client only if fouSourcePortAuto is true, or gatewaySelection is Agent.",
      ),
    sessionAffinityConfig: SessionAffinityConfig.describe(
      "Settings of the session affinity.",
    ).exactOptional(),
    fouSourcePortAuto: z
      .boolean()
      .default(false)
      .describe(
        "If true, each flow of a client has its own source port in the tunnel, so that the network can spread " +
          "flows over paths and, without session affinity, over gateways. If false, the source port is 5555.",
      ),
    drainTimeoutSeconds: z
      .int32()
      .min(0)
      .max(MAX_DRAIN_SECONDS)
      .default(300)
      .describe(
        "For how long a gateway that is being terminated still serves its flows, in seconds, at most one day. It " +
          "ends as soon as they are over, but no sooner than after 5 seconds. A change of this field replaces the gateways, because " +
          "it is part of their pods, unless the template has a terminationGracePeriodSeconds.",
      ),
    podDisruptionBudget: DisruptionBudget.describe(
      "If set, a PodDisruptionBudget protects the gateways while nodes are drained. It does not protect gateways " +
        "that are not ready, because one that never becomes ready would block the drain forever.",
    ).exactOptional(),
    originatingOnly: z
      .boolean()
      .default(true)
      .describe(
        "If true, only flows that the client opens go through the gateway, and replies to inbound flows leave the " +
          "way they came. If false, replies to the destinations go through the gateway as well.",
      ),
    clientStartup: z
      .enum(["WaitForGateway", "Immediate"])
      .default("WaitForGateway")
      .describe(
        "WaitForGateway starts a client pod only when its gateways know it, so that its first packet passes. " +
          "Immediate starts the pod at once: until a gateway knows it, its packets are rejected, and never sent " +
          "around the gateway.",
      ),
    gatewaySelection: z
      .enum(["Service", "Agent"])
      .default("Service")
      .describe(
        "Who picks the gateway of a flow. Service: the Service proxy of the node (kube-proxy), as in coil. Agent: the " +
          "node agent, which picks one gateway for each client with sessionAffinity ClientIP, and one for each flow " +
          "with None. A flow then stays with its gateway until it ends, while the gateway terminates as well, and new " +
          "flows leave a gateway that does not answer. A change of this field moves no flow.",
      ),
    uplinkProbe: UplinkProbe.describe(
      "If set, each gateway asks some addresses whether its way out works. One that gets no answer while another one " +
        "does takes no new flows, and comes back by itself; those that it has stay if gatewaySelection is Agent. If no " +
        "other gateway gets an answer, the addresses count as the cause: a gateway in use stays in use.",
    ).exactOptional(),
    natBackend: z
      .enum(["nftables", "iptables"])
      .default("nftables")
      .describe(
        "With what a gateway filters and translates packets. nftables is faster, because established flows take a " +
          "shorter way through the kernel. iptables needs more kernel modules on the nodes of the gateways. A change " +
          "of this field replaces no gateway and ends no flow. A gateway that cannot use it is not ready, and the " +
          "condition Degraded says what is missing.",
      ),
    subnets: withRules(z.array(z.string()), {
      cel: "false",
      holds: () => false,
      message: "subnets is an older name of destinations: use destinations",
    })
      .describe("Refused, because it is an older name of `destinations`.")
      .exactOptional(),
  })
  .describe("What the gateway service should be.");
export type EgressSpec = z.infer<typeof EgressSpec>;

/** An Egress that nothing can pass is a mistake of its author, and clients would not notice what they miss. */
const SOMETHING_IS_LEFT: Rule<EgressSpec> = {
  cel:
    "!has(self.excludedDestinations) || !self.destinations.all(d, self.excludedDestinations.exists(e, " +
    "isCIDR(d) && isCIDR(e) && cidr(e).containsCIDR(cidr(d))))",
  holds: ({ destinations, excludedDestinations = [] }) =>
    !destinations.every((destination) =>
      excludedDestinations.some((excluded) => containsCidr(excluded, destination)),
    ),
  message:
    "excludedDestinations cover every destination, so nothing would pass: make them narrower than the destinations",
};

/** As the API server has it for Services: a configuration that has no effect is a mistake of its author. */
const CONFIG_NEEDS_AFFINITY: Rule<EgressSpec> = {
  cel: "!has(self.sessionAffinityConfig) || self.sessionAffinity == 'ClientIP'",
  holds: ({ sessionAffinity, sessionAffinityConfig }) =>
    sessionAffinityConfig === undefined || sessionAffinity === "ClientIP",
  message: "sessionAffinityConfig needs the sessionAffinity ClientIP: remove it, or change the affinity",
};

/** Gateways are found by this label: with another value the Service would have none, and the Deployment never enough. */
const LABEL_IS_OURS: Rule<{ metadata: ObjectMeta; spec: EgressSpec }> = {
  cel: `self.spec.?template.metadata.labels[?'${EGRESS_LABEL}'].orValue(self.metadata.name) == self.metadata.name`,
  holds: ({ metadata, spec }) =>
    (spec.template?.metadata?.labels?.[EGRESS_LABEL] ?? metadata.name) === metadata.name,
  message:
    `the operator itself sets the label ${EGRESS_LABEL} to the name of the Egress: remove it from ` +
    "spec.template.metadata.labels",
};

/** An Egress as the API server returns it. */
export const Egress = withCel(
  withRules(
    z
      .object({
        apiVersion: z.string().exactOptional(),
        kind: z.string().exactOptional(),
        metadata: ObjectMeta,
        spec: withRules(EgressSpec, SOMETHING_IS_LEFT, CONFIG_NEEDS_AFFINITY),
        status: EgressStatus.exactOptional(),
      })
      .describe(
        "A NAT gateway service. Pods opt in with the annotation egress.coil.cybozu.com/<namespace>: <name>. What " +
          "they send to the destinations then leaves from the address of a gateway pod.",
      ),
    LABEL_IS_OURS,
  ),
  {
    rule: "self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",
    message:
      "the name of an Egress is also that of its Service: at most 63 lower-case letters, digits and '-', " +
      "beginning with a letter",
  },
);
export type Egress = z.infer<typeof Egress>;
