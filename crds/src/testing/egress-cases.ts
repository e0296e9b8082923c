/** Egresses, good and bad: what the API server says to each, and zod has to agree. */

/** One Egress. */
export interface EgressCase {
  readonly title: string;
  readonly name?: string;
  readonly spec: unknown;
  /** What the refusal says; an Egress without it is accepted. */
  readonly refusal?: string;
  /** Only the API server can tell: zod lets names of objects, the pod spec and what is unknown pass. */
  readonly onlyServer?: true;
}

const ANY = { destinations: ["0.0.0.0/0"] };

const notCidr = (text: string) =>
  `"${text}" is not a CIDR: write an address and a prefix length, like 192.0.2.0/24 or 2001:db8::/32`;

/** An IPv6 network in its longest spelling. */
function longNetwork(index: number): string {
  return `2001:0db8:ffff:ffff:ffff:ffff:ffff:${(0x1000 + index).toString(16)}/128`;
}

export const EGRESS_CASES: readonly EgressCase[] = [
  { title: "one IPv4 network", spec: { destinations: ["192.0.2.0/24"] } },
  { title: "both families", spec: { destinations: ["0.0.0.0/0", "::/0"] } },
  {
    title: "host bits and duplicates",
    spec: { destinations: ["192.168.10.7/24", "192.168.10.0/24", "192.168.10.0/24"] },
  },
  { title: "one address", spec: { destinations: ["192.0.2.1/32", "2001:db8::1/128"] } },
  {
    title: "1000 long networks",
    spec: { destinations: Array.from({ length: 1000 }, (_, index) => longNetwork(index)) },
  },
  {
    title: "addresses of the uplink's probe",
    spec: { ...ANY, uplinkProbe: { targets: ["192.0.2.1", "2001:db8::1"] } },
  },
  {
    title: "a probe of nobody",
    spec: { ...ANY, uplinkProbe: { targets: [] } },
    refusal: "should have at least 1 items",
  },
  {
    title: "a probe of a name",
    spec: { ...ANY, uplinkProbe: { targets: ["example.org"] } },
    refusal: '"example.org" is not an IP address: write one like 192.0.2.1 or 2001:db8::1',
  },
  ...[
    "127.0.0.1",
    "0.0.0.0",
    "169.254.1.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "ff02::1",
  ].map((target) => ({
    title: `a probe of ${target}`,
    spec: { ...ANY, uplinkProbe: { targets: [target] } },
    refusal: `"${target}" is not a routable address of a host: write one like 192.0.2.1 or 2001:db8::1`,
  })),
  {
    title: "a probe of private addresses",
    spec: { ...ANY, uplinkProbe: { targets: ["10.0.0.1", "fd00::1"] } },
  },
  {
    title: "a probe of too many addresses",
    spec: { ...ANY, uplinkProbe: { targets: Array.from({ length: 9 }, (_, index) => `192.0.2.${index}`) } },
    refusal: "must have at most 8 items",
  },
  { title: "no destinations", spec: {}, refusal: "spec.destinations: Required value" },
  {
    title: "an empty list of destinations",
    spec: { destinations: [] },
    refusal: "should have at least 1 items",
  },
  {
    title: "1001 networks",
    spec: { destinations: Array.from({ length: 1001 }, (_, index) => longNetwork(index)) },
    refusal: "must have at most 1000 items",
  },
  ...[
    "192.0.2.1",
    "192.0.2.0/33",
    "2001:db8::/129",
    "192.0.2.0/-1",
    "10.0.0.0/08",
    "10.0.0/8",
    "300.0.0.0/8",
    "example.org/24",
    "",
    "192.0.2.0/24 ",
    " 192.0.2.0/24",
    "192.0.2.0 /24",
    "192.0.2.0/",
    "/24",
    "192.0.2.0/24/8",
    "192.0.2.0/255.255.255.0",
    "192.0.2.0-192.0.2.255",
    "192.0.2.0:443/24",
    "https://192.0.2.0/24",
    "0.0.0.0/0,::/0",
    "010.0.0.0/8",
    "0x0a.0.0.0/8",
    "10.0.0.0/+8",
    "2001:db8::/32/",
    "[2001:db8::]/32",
    "2001:db8::g/64",
    "2001:db8::1::/64",
    "fe80::1%eth0/64",
    "::ffff:192.0.2.0/120",
    "0:0:0:0:0:ffff:c000:0200/120",
  ].map((text) => ({
    title: `the destination "${text}"`,
    spec: { destinations: ["0.0.0.0/0", text] },
    refusal: notCidr(text),
  })),
  {
    title: "a destination with the end of its line",
    spec: { destinations: ["192.0.2.0/24\n"] },
    refusal: '"192.0.2.0/24\\n": the text is not a CIDR: write an address and a prefix length',
  },
  {
    title: "a destination longer than any network",
    spec: { destinations: [`${"0".repeat(40)}::/0`] },
    refusal: "spec.destinations[0]: Too long: may not be more than 43 bytes",
  },
  {
    title: "an IPv6 network of only zeros but the mark of a mapped one",
    spec: { destinations: ["::ffff:1:2:3/128"] },
  },
  {
    title: "IPv6 in capitals, and in full",
    spec: { destinations: ["2001:DB8::/32", "2001:0db8:0:0:0:0:0:1/128"] },
  },
  { title: "null for destinations", spec: { destinations: null }, refusal: "spec.destinations" },
  {
    title: "one destination instead of a list",
    spec: { destinations: "0.0.0.0/0" },
    refusal: "spec.destinations in body must be of type array",
  },
  {
    title: "a number for a destination",
    spec: { destinations: [10] },
    refusal: "spec.destinations[0] in body must be of type string",
  },
  { title: "nothing for a destination", spec: { destinations: [null] }, refusal: "spec.destinations[0]" },
  {
    title: "a destination without a part of it",
    spec: { destinations: ["0.0.0.0/0", "::/0"], excludedDestinations: ["192.0.2.7/24", "2001:db8::/32"] },
  },
  { title: "an exclusion of something else", spec: { ...ANY, excludedDestinations: ["2001:db8::/32"] } },
  {
    title: "one destination of two excluded",
    spec: {
      destinations: ["192.0.2.0/24", "198.51.100.0/24"],
      excludedDestinations: ["192.0.2.0/23"],
    },
  },
  {
    title: "an exclusion that is no network",
    spec: { ...ANY, excludedDestinations: ["192.0.2.1"] },
    refusal: notCidr("192.0.2.1"),
  },
  ...[
    { destinations: ["192.0.2.0/24"], excludedDestinations: ["192.0.2.0/24"] },
    { destinations: ["10.1.2.3/32", "2001:db8:1::/48"], excludedDestinations: ["::/0", "10.255.0.0/8"] },
  ].map((spec) => ({
    title: `exclusions of all of ${spec.destinations.join(" and ")}`,
    spec,
    refusal: "excludedDestinations cover every destination",
  })),
  {
    title: "exclusions that cover a destination only together, which nobody notices",
    spec: { destinations: ["192.0.2.0/24"], excludedDestinations: ["192.0.2.0/25", "192.0.2.128/25"] },
  },
  { title: "an empty list of exclusions", spec: { ...ANY, excludedDestinations: [] } },
  {
    title: "101 exclusions",
    spec: { ...ANY, excludedDestinations: Array.from({ length: 101 }, (_, index) => longNetwork(index)) },
    refusal: "must have at most 100 items",
  },
  {
    title: "namespaces by labels",
    spec: {
      ...ANY,
      allowedNamespaces: {
        matchLabels: { "kubernetes.io/metadata.name": "payments", note: "" },
        matchExpressions: [
          { key: "team", operator: "In", values: ["payments", "orders"] },
          { key: "example.com/sandbox", operator: "DoesNotExist" },
        ],
      },
    },
  },
  { title: "all namespaces", spec: { ...ANY, allowedNamespaces: {} } },
  ...["-team", "Example.com/team", "a/b/c", "", `${"a".repeat(64)}`].map((key) => ({
    title: `the label key "${key}" to match`,
    spec: { ...ANY, allowedNamespaces: { matchLabels: { [key]: "payments" } } },
    refusal: "spec.allowedNamespaces.matchLabels: Invalid value: has a key that is not a label key",
  })),
  {
    title: "65 labels to match",
    spec: {
      ...ANY,
      allowedNamespaces: {
        matchLabels: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`label-${index}`, ""])),
      },
    },
    refusal: "must have at most 64 items",
    onlyServer: true,
  },
  {
    title: "17 requirements of labels",
    spec: {
      ...ANY,
      allowedNamespaces: {
        matchExpressions: Array.from({ length: 17 }, (_, index) => ({
          key: `label-${index}`,
          operator: "Exists",
        })),
      },
    },
    refusal: "must have at most 16 items",
  },
  {
    title: "a requirement without an operator",
    spec: { ...ANY, allowedNamespaces: { matchExpressions: [{ key: "team" }] } },
    refusal: "spec.allowedNamespaces.matchExpressions[0].operator: Required value",
  },
  {
    title: "a number for a label's value",
    spec: { ...ANY, allowedNamespaces: { matchLabels: { team: 7 } } },
    refusal: "spec.allowedNamespaces.matchLabels.team in body must be of type string",
  },
  {
    title: "namespaces by a misspelt selector",
    spec: { ...ANY, allowedNamespaces: { matchLabel: { team: "payments" } } },
    refusal: 'unknown field "spec.allowedNamespaces.matchLabel"',
    onlyServer: true,
  },
  {
    title: "namespaces by a list of names",
    spec: { ...ANY, allowedNamespaces: ["payments"] },
    refusal: "must be of type object",
  },
  ...[
    { key: "team", operator: "In" },
    { key: "team", operator: "NotIn", values: [] },
    { key: "team", operator: "Exists", values: ["payments"] },
  ].map((requirement) => ({
    title: `a requirement of ${requirement.operator} with ${requirement.values?.length ?? "no"} values`,
    spec: { ...ANY, allowedNamespaces: { matchExpressions: [requirement] } },
    refusal: "the operators In and NotIn need values, Exists and DoesNotExist must have none",
  })),
  {
    title: "an unknown operator",
    spec: {
      ...ANY,
      allowedNamespaces: { matchExpressions: [{ key: "team", operator: "Like", values: ["a"] }] },
    },
    refusal: 'Unsupported value: "Like"',
  },
  {
    title: "a label that cannot be",
    spec: { ...ANY, allowedNamespaces: { matchLabels: { team: "-payments" } } },
    refusal: '"-payments" is not a label value',
  },
  {
    title: "a label key that cannot be",
    spec: {
      ...ANY,
      allowedNamespaces: { matchExpressions: [{ key: "Example.com/team", operator: "Exists" }] },
    },
    refusal: '"Example.com/team" is not a label key',
  },
  { title: "no replicas", spec: { ...ANY, replicas: 0 } },
  { title: "many replicas", spec: { ...ANY, replicas: 100 } },
  { title: "less than no replicas", spec: { ...ANY, replicas: -1 }, refusal: "greater than or equal to 0" },
  { title: "half a replica", spec: { ...ANY, replicas: 0.5 }, refusal: "must be of type integer" },
  {
    title: "more replicas than 32 bits hold",
    spec: { ...ANY, replicas: 2 ** 31 },
    refusal: "spec.replicas",
  },
  // A default stands in for null before anybody looks.
  { title: "null replicas", spec: { ...ANY, replicas: null }, onlyServer: true },
  {
    title: "replicas in digits of a text",
    spec: { ...ANY, replicas: "2" },
    refusal: "must be of type integer",
  },
  { title: "replicas in words", spec: { ...ANY, replicas: "two" }, refusal: "must be of type integer" },
  { title: "an empty strategy", spec: { ...ANY, strategy: {} } },
  { title: "a recreation", spec: { ...ANY, strategy: { type: "Recreate" } } },
  {
    title: "a rolling update",
    spec: { ...ANY, strategy: { rollingUpdate: { maxSurge: "150%", maxUnavailable: 0 } } },
  },
  {
    title: "limits of a rolling update for a recreation",
    spec: { ...ANY, strategy: { type: "Recreate", rollingUpdate: { maxSurge: 1 } } },
    refusal: "rollingUpdate needs the type RollingUpdate: remove it, or change the type",
  },
  {
    title: "an unknown strategy",
    spec: { ...ANY, strategy: { type: "BlueGreen" } },
    refusal: 'Unsupported value: "BlueGreen"',
  },
  {
    title: "a negative surge",
    spec: { ...ANY, strategy: { rollingUpdate: { maxSurge: -1 } } },
    refusal: 'must be a count of at least 0, or a percentage such as "25%"',
  },
  ...["some", "abc%", "-1", "-1%", "25", "2.5%", "%", "", 2 ** 31].map((maxSurge) => ({
    title: `a surge of "${maxSurge}"`,
    spec: { ...ANY, strategy: { rollingUpdate: { maxSurge } } },
    refusal: 'must be a count of at least 0, or a percentage such as "25%"',
  })),
  {
    title: "half a pod of surge",
    spec: { ...ANY, strategy: { rollingUpdate: { maxSurge: 0.5 } } },
    refusal: "spec.strategy.rollingUpdate.maxSurge",
  },
  ...["101%", "-1%", 2 ** 31].map((maxUnavailable) => ({
    title: `${maxUnavailable} of the gateways unavailable in an update`,
    spec: { ...ANY, strategy: { rollingUpdate: { maxUnavailable } } },
    refusal: 'must be a count of at least 0, or a percentage from "0%" to "100%"',
  })),
  ...[
    { maxSurge: 0, maxUnavailable: 0 },
    { maxSurge: "0%", maxUnavailable: 0 },
  ].map((rollingUpdate) => ({
    title: `an update with a surge of ${rollingUpdate.maxSurge} and none unavailable`,
    spec: { ...ANY, strategy: { rollingUpdate } },
    refusal: "maxSurge and maxUnavailable cannot both be 0",
  })),
  { title: "an update without a surge", spec: { ...ANY, strategy: { rollingUpdate: { maxSurge: 0 } } } },
  { title: "session affinity None", spec: { ...ANY, sessionAffinity: "None" } },
  ...[{}, { clientIP: { timeoutSeconds: 60 } }].map((sessionAffinityConfig) => ({
    title: `session affinity None with the configuration ${JSON.stringify(sessionAffinityConfig)}`,
    spec: { ...ANY, sessionAffinity: "None", sessionAffinityConfig },
    refusal: "sessionAffinityConfig needs the sessionAffinity ClientIP: remove it, or change the affinity",
  })),
  {
    title: "a configuration of the default affinity",
    spec: { ...ANY, sessionAffinityConfig: { clientIP: {} } },
  },
  {
    title: "an unknown session affinity",
    spec: { ...ANY, sessionAffinity: "Cookie" },
    refusal: 'Unsupported value: "Cookie"',
  },
  {
    title: "the longest timeout",
    spec: { ...ANY, sessionAffinityConfig: { clientIP: { timeoutSeconds: 86400 } } },
  },
  {
    title: "a timeout of more than a day",
    spec: { ...ANY, sessionAffinityConfig: { clientIP: { timeoutSeconds: 86401 } } },
    refusal: "less than or equal to 86400",
  },
  ...[0, -1].map((timeoutSeconds) => ({
    title: `a timeout of ${timeoutSeconds} seconds`,
    spec: { ...ANY, sessionAffinityConfig: { clientIP: { timeoutSeconds } } },
    refusal: "timeoutSeconds in body should be greater than or equal to 1",
  })),
  {
    title: "a timeout with a unit",
    spec: { ...ANY, sessionAffinityConfig: { clientIP: { timeoutSeconds: "3h" } } },
    refusal: "timeoutSeconds in body must be of type integer",
  },
  { title: "a budget by count", spec: { ...ANY, podDisruptionBudget: { minAvailable: 1 } } },
  { title: "a budget by percentage", spec: { ...ANY, podDisruptionBudget: { maxUnavailable: "100%" } } },
  {
    title: "a budget with both fields",
    spec: { ...ANY, podDisruptionBudget: { minAvailable: 1, maxUnavailable: 1 } },
    refusal: "needs exactly one of minAvailable and maxUnavailable",
  },
  {
    title: "a budget with neither field",
    spec: { ...ANY, podDisruptionBudget: {} },
    refusal: "needs exactly one of minAvailable and maxUnavailable",
  },
  ...["101%", "-1%", "50", "5 %", "abc%", -1, 2 ** 31].map((minAvailable) => ({
    title: `a budget of ${minAvailable}`,
    spec: { ...ANY, podDisruptionBudget: { minAvailable } },
    refusal: 'must be a count of at least 0, or a percentage from "0%" to "100%"',
  })),
  {
    title: "all switches",
    spec: { ...ANY, fouSourcePortAuto: true, originatingOnly: false, clientStartup: "Immediate" },
  },
  {
    title: "a gateway that ends at once",
    spec: { ...ANY, drainTimeoutSeconds: 0 },
  },
  ...[-1, 86_401].map((drainTimeoutSeconds) => ({
    title: `${drainTimeoutSeconds} seconds to drain`,
    spec: { ...ANY, drainTimeoutSeconds },
    refusal: "spec.drainTimeoutSeconds in body should be",
  })),
  {
    title: "an unknown client startup",
    spec: { ...ANY, clientStartup: "Later" },
    refusal: 'Unsupported value: "Later"',
  },
  ...["Service", "Agent"].map((gatewaySelection) => ({
    title: `gateways picked by ${gatewaySelection}`,
    spec: { ...ANY, gatewaySelection },
  })),
  ...["agent", "Client", ""].map((gatewaySelection) => ({
    title: `gateways picked by ${JSON.stringify(gatewaySelection)}`,
    spec: { ...ANY, gatewaySelection },
    refusal: `Unsupported value: ${JSON.stringify(gatewaySelection)}`,
  })),
  ...["nftables", "iptables"].map((natBackend) => ({
    title: `NAT by ${natBackend}`,
    spec: { ...ANY, natBackend },
  })),
  ...["nft", "IPTables", ""].map((natBackend) => ({
    title: `NAT by ${JSON.stringify(natBackend)}`,
    spec: { ...ANY, natBackend },
    refusal: `Unsupported value: ${JSON.stringify(natBackend)}`,
  })),
  ...["yes", "true", 1].map((fouSourcePortAuto) => ({
    title: `${JSON.stringify(fouSourcePortAuto)} for true`,
    spec: { ...ANY, fouSourcePortAuto },
    refusal: "spec.fouSourcePortAuto in body must be of type boolean",
  })),
  {
    title: "originatingOnly in words",
    spec: { ...ANY, originatingOnly: "no" },
    refusal: "spec.originatingOnly in body must be of type boolean",
  },
  {
    title: "a template without containers",
    spec: {
      ...ANY,
      template: { metadata: { labels: { team: "network" } }, spec: { priorityClassName: "high" } },
    },
  },
  {
    title: "a template that completes the gateway's container",
    spec: {
      ...ANY,
      template: {
        spec: { containers: [{ name: "egress", resources: { limits: { cpu: 2, memory: "1Gi" } } }] },
      },
    },
  },
  {
    title: "a template with a field that pods do not have",
    spec: { ...ANY, template: { spec: { contaners: [] } } },
    refusal: 'unknown field "spec.template.spec.contaners"',
    onlyServer: true,
  },
  ...[
    { labels: { "coil.cybozu.com/egress": "nat" } },
    { annotations: { "coil.cybozu.com/egress-gateway": "true", "prometheus.io/scrape": "true" } },
  ].map((metadata) => ({
    title: `a template that repeats what the operator sets: ${JSON.stringify(metadata)}`,
    spec: { ...ANY, template: { metadata } },
  })),
  {
    title: "a template with another value of the label that selects the gateways",
    spec: { ...ANY, template: { metadata: { labels: { "coil.cybozu.com/egress": "other" } } } },
    refusal:
      "the operator itself sets the label coil.cybozu.com/egress to the name of the Egress: remove it from " +
      "spec.template.metadata.labels",
  },
  {
    title: "a template with another value of the operator's annotation",
    spec: { ...ANY, template: { metadata: { annotations: { "coil.cybozu.com/egress-gateway": "false" } } } },
    refusal: 'the operator itself sets the annotation coil.cybozu.com/egress-gateway to "true": remove it',
  },
  {
    title: "a template that makes a client of the gateway",
    spec: { ...ANY, template: { metadata: { annotations: { "egress.coil.cybozu.com/internet": "nat" } } } },
    refusal: "a gateway cannot be a client: remove the annotations egress.coil.cybozu.com/...",
  },
  {
    title: "a template on the host's network",
    spec: { ...ANY, template: { spec: { hostNetwork: true } } },
    refusal: "a gateway needs a network namespace of its own: remove spec.hostNetwork",
  },
  {
    title: "a template off the host's network",
    spec: { ...ANY, template: { spec: { hostNetwork: false } } },
  },
  {
    title: "a template that is a list",
    spec: { ...ANY, template: [] },
    refusal: "spec.template in body must be of type object",
  },
  {
    title: "a number for a label of the template",
    spec: { ...ANY, template: { metadata: { labels: { team: 7 } } } },
    refusal: "spec.template.metadata.labels.team in body must be of type string",
  },
  ...["", "-", "a/", "/a", "a b", "UPPER.example/a", "x".repeat(64)].map((key) => ({
    title: `a template with the label key ${JSON.stringify(key)}`,
    spec: { ...ANY, template: { metadata: { labels: { [key]: "a" } } } },
    refusal: "has a key that is not a label key",
  })),
  {
    title: "a template with a label value that is none",
    spec: { ...ANY, template: { metadata: { labels: { team: "our team" } } } },
    refusal: '"our team" is not a label value',
  },
  {
    title: "a template with an annotation key that is none",
    spec: { ...ANY, template: { metadata: { annotations: { "a b": "a" } } } },
    refusal: "has a key that is not an annotation key",
  },
  {
    title: "a template with labels and annotations as Kubernetes allows them",
    spec: {
      ...ANY,
      template: {
        metadata: {
          labels: { "example.com/Team_1.a": "", b: "X" },
          annotations: { "Example.com/note": "any text\n", b: "" },
        },
      },
    },
  },
  {
    title: "a template with a name",
    spec: { ...ANY, template: { metadata: { name: "gateway" } } },
    refusal: 'unknown field "spec.template.metadata.name"',
    onlyServer: true,
  },
  ...[
    [{ containers: {} }, "spec.template.spec.containers in body must be of type array"],
    [{ containers: [{ image: "own:1" }] }, "spec.template.spec.containers[0].name: Required value"],
    [
      { containers: [{ name: "egress" }, { name: "egress" }] },
      'spec.template.spec.containers[1]: Duplicate value: {"name":"egress"}',
    ],
    [
      { terminationGracePeriodSeconds: "long" },
      "spec.template.spec.terminationGracePeriodSeconds in body must be of type integer",
    ],
    [{ tolerations: [{ operator: "Always" }] }, 'Unsupported value: "Always"'],
  ].map(([spec, refusal]) => ({
    title: `a template with ${JSON.stringify(spec)}`,
    spec: { ...ANY, template: { spec } },
    refusal: String(refusal),
    onlyServer: true as const,
  })),
  // What Kubernetes' schema does not say, the API server says of the Deployment: the condition Degraded has it.
  {
    title: "a container without an image beside the gateway's",
    spec: { ...ANY, template: { spec: { containers: [{ name: "logger" }] } } },
  },
  {
    title: "a template with a malformed quantity",
    spec: {
      ...ANY,
      template: { spec: { containers: [{ name: "egress", resources: { limits: { memory: "much" } } }] } },
    },
    refusal: "spec.template.spec.containers[0].resources.limits.memory",
    onlyServer: true,
  },
  {
    title: "an unknown field",
    spec: { ...ANY, destination: "0.0.0.0/0" },
    refusal: 'unknown field "spec.destination"',
    onlyServer: true,
  },
  {
    title: "an unknown field deeper down",
    spec: { ...ANY, sessionAffinityConfig: { clientIP: { timeout: 60 } } },
    refusal: 'unknown field "spec.sessionAffinityConfig.clientIP.timeout"',
    onlyServer: true,
  },
  { title: "a text for the spec", spec: "0.0.0.0/0", refusal: "spec in body must be of type object" },
  {
    title: "subnets, as older documents of coil have it",
    spec: { subnets: ["0.0.0.0/0"] },
    refusal: "spec.destinations: Required value",
  },
  {
    title: "subnets beside destinations",
    spec: { ...ANY, subnets: ["0.0.0.0/0"] },
    refusal: "subnets is an older name of destinations: use destinations",
  },
  ...["1st", "internet.gateway", "a".repeat(64)].map((name) => ({
    title: `the name ${name}`,
    name,
    spec: ANY,
    refusal: "the name of an Egress is also that of its Service",
    onlyServer: true as const,
  })),
  ...["Internet", "nat_1", "nat-", "-nat"].map((name) => ({
    title: `the name ${name}`,
    name,
    spec: ANY,
    refusal: `metadata.name: Invalid value: "${name}": a lowercase RFC 1123 subdomain`,
    onlyServer: true as const,
  })),
  { title: "the longest name", name: "a".repeat(63), spec: ANY },
];
