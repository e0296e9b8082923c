/** Egresses, good and bad: what the API server says to each, and zod has to agree. */

/** One Egress. */
export interface EgressCase {
  readonly title: string;
  readonly name?: string;
  readonly spec: object;
  /** What the refusal says; an Egress without it is accepted. */
  readonly refusal?: string;
  /** Only the API server can tell: zod has the template, and names of objects, pass. */
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
    "192.0.2.0/24/8",
    "fe80::1%eth0/64",
    "::ffff:192.0.2.0/120",
  ].map((text) => ({
    title: `the destination "${text}"`,
    spec: { destinations: ["0.0.0.0/0", text] },
    refusal: notCidr(text),
  })),
  { title: "null for destinations", spec: { destinations: null }, refusal: "spec.destinations" },
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
    refusal: '"-payments" is no label value',
  },
  {
    title: "a label key that cannot be",
    spec: {
      ...ANY,
      allowedNamespaces: { matchExpressions: [{ key: "Example.com/team", operator: "Exists" }] },
    },
    refusal: '"Example.com/team" is no label key',
  },
  { title: "no replicas", spec: { ...ANY, replicas: 0 } },
  { title: "many replicas", spec: { ...ANY, replicas: 100 } },
  { title: "less than no replicas", spec: { ...ANY, replicas: -1 }, refusal: "greater than or equal to 0" },
  { title: "half a replica", spec: { ...ANY, replicas: 0.5 }, refusal: "must be of type integer" },
  { title: "replicas in words", spec: { ...ANY, replicas: "two" }, refusal: "must be of type integer" },
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
  {
    title: "a surge in words",
    spec: { ...ANY, strategy: { rollingUpdate: { maxSurge: "some" } } },
    refusal: 'must be a count of at least 0, or a percentage such as "25%"',
  },
  { title: "session affinity None", spec: { ...ANY, sessionAffinity: "None" } },
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
  {
    title: "no timeout at all",
    spec: { ...ANY, sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
    refusal: "greater than or equal to 1",
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
  ...["101%", "-1%", "50", "5 %", -1].map((minAvailable) => ({
    title: `a budget of ${minAvailable}`,
    spec: { ...ANY, podDisruptionBudget: { minAvailable } },
    refusal: 'must be a count of at least 0, or a percentage from "0%" to "100%"',
  })),
  {
    title: "all switches",
    spec: { ...ANY, fouSourcePortAuto: true, originatingOnly: false, clientStartup: "Immediate" },
  },
  {
    title: "an unknown client startup",
    spec: { ...ANY, clientStartup: "Later" },
    refusal: 'Unsupported value: "Later"',
  },
  { title: "yes for true", spec: { ...ANY, fouSourcePortAuto: "yes" }, refusal: "must be of type boolean" },
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
    title: "subnets, as older documents of coil have it",
    spec: { subnets: ["0.0.0.0/0"] },
    refusal: "spec.destinations: Required value",
  },
  {
    title: "subnets beside destinations",
    spec: { ...ANY, subnets: ["0.0.0.0/0"] },
    refusal: "subnets is an older spelling: write the networks to destinations",
  },
  ...["1st", "internet.gateway", "a".repeat(64)].map((name) => ({
    title: `the name ${name}`,
    name,
    spec: ANY,
    refusal: "the name of an Egress is also that of its Service",
    onlyServer: true as const,
  })),
  { title: "the longest name", name: "a".repeat(63), spec: ANY },
];
