/** Values of the chart that the tests render beside the default ones: each value is in one of them. */

type Values = Readonly<Record<string, unknown>>;

const DIGEST = `sha256:${"0".repeat(64)}`;

const RESOURCES = { requests: { cpu: "100m", memory: "200Mi" }, limits: { cpu: 1, memory: "400Mi" } };

/** By what they are for. */
export const VALUE_SETS: Readonly<Record<string, Values>> = {
  "images of another registry": {
    image: {
      registry: "registry.example/team",
      tag: "9.9",
      operator: { repository: "nat/operator" },
      egressPod: { repository: "nat/gateway" },
      nodeAgent: { repository: "nat/agent" },
      pullPolicy: "Always",
      pullSecrets: ["registry"],
    },
  },
  "images by their digests": {
    image: { operator: { digest: DIGEST }, egressPod: { digest: DIGEST }, nodeAgent: { digest: DIGEST } },
  },
  "networks of the cluster": {
    clusterRanges: ["10.244.0.0/16", "fd00:244::/56"],
    serviceAddressesInCluster: true,
  },
  "invalid clients are refused": { invalidClients: "Deny" },
  "more in the log": { logLevel: "debug" },
  "closed metrics": {
    metrics: {
      networkPolicy: {
        enabled: true,
        from: [{ namespaceSelector: { matchLabels: { team: "monitoring" } } }],
      },
      agentAddress: "127.0.0.1",
    },
  },
  "the Prometheus operator": {
    metrics: {
      podMonitor: { enabled: true, labels: { release: "prometheus" }, interval: "30s" },
      prometheusRule: { enabled: true, labels: { release: "prometheus" } },
    },
  },
  "a quota for priorities": { priorityQuota: true },
  "no priorities": { operator: { priorityClassName: "" }, nodeAgent: { priorityClassName: "" } },
  "resources of hooks": { hooks: { resources: RESOURCES } },
  "pods of the operator": {
    operator: {
      replicas: 3,
      maxConcurrentRollouts: 7,
      resources: RESOURCES,
      nodeSelector: { "node-role.kubernetes.io/control-plane": "" },
      tolerations: [{ key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" }],
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            {
              topologyKey: "topology.kubernetes.io/zone",
              labelSelector: { matchLabels: { "app.kubernetes.io/component": "operator" } },
            },
          ],
        },
      },
      podLabels: { team: "network" },
      podAnnotations: { "sidecar.istio.io/inject": "false" },
    },
  },
  "pods of the agents": {
    nodeAgent: {
      cniBinDir: "/var/lib/cni/bin",
      cniConfDir: "/etc/cni",
      resources: RESOURCES,
      nodeSelector: { pool: "apps" },
      tolerations: [{ key: "dedicated", operator: "Equal", value: "apps" }],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: "type", operator: "NotIn", values: ["virtual"] }] },
            ],
          },
        },
      },
      podLabels: { team: "network" },
      podAnnotations: { "sidecar.istio.io/inject": "false" },
      maxUnavailable: 1,
    },
  },
  "a runtime that passes no annotations": { nodeAgent: { runtimePassesAnnotations: false } },
  "a startup taint": { nodeAgent: { startupTaint: "example.com/not-ready" } },
};

/** All options at once, with the priorities that are the default. */
export const ALL_OPTIONS = Object.entries(VALUE_SETS)
  .filter(([name]) => name !== "no priorities")
  .map(([, values]) => values)
  .reduce(merged);

/** As Helm merges files of values: maps by their keys, of all else the last. */
function merged(one: Values, other: Values): Values {
  const both = Object.entries(other).map(([key, value]) => {
    const before = one[key];
    return [key, isMap(before) && isMap(value) ? merged(before, value) : value];
  });
  return { ...one, ...Object.fromEntries(both) };
}

function isMap(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
