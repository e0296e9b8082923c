import { COREDNS_IMAGE } from "./coredns-image.ts";
import type { ClusterPlan } from "./plan.ts";

const NAMESPACE = "kube-system";
const NAME = "coredns";
const LABELS = { "k8s-app": "kube-dns" };
const HEALTH_PORT = 8080;
const READY_PORT = 8181;

/** The objects of the cluster's DNS, as `kubectl apply` takes them: the same names as in other clusters. */
export function dnsManifests(plan: ClusterPlan): readonly object[] {
  const metadata = { name: NAME, namespace: NAMESPACE };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "system:coredns" },
      rules: [
        { apiGroups: [""], resources: ["services", "pods", "namespaces"], verbs: ["list", "watch"] },
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "system:coredns" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:coredns" },
      subjects: [{ kind: "ServiceAccount", ...metadata }],
    },
    { apiVersion: "v1", kind: "ConfigMap", metadata, data: { Corefile: corefile(plan) } },
    { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: deployment() },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "kube-dns", namespace: NAMESPACE, labels: LABELS },
      spec: {
        clusterIP: plan.dnsServiceIPs[0],
        clusterIPs: plan.dnsServiceIPs,
        ipFamilyPolicy: "RequireDualStack",
        selector: LABELS,
        ports: [
          { name: "dns", port: 53, protocol: "UDP" },
          { name: "dns-tcp", port: 53, protocol: "TCP" },
        ],
      },
    },
  ];
}

/** Names of the cluster, and `wide.internet.test` and so on for the servers outside. */
function corefile({ internet: { wide, narrow, lowMtu } }: ClusterPlan): string {
  const names = Object.entries({ wide, narrow, "low-mtu": lowMtu }).flatMap(([name, { ipv4, ipv6 }]) => [
    `${ipv4} ${name}.internet.test`,
    `${ipv6} ${name}.internet.test`,
  ]);
  return `.:53 {
    errors
    health :${HEALTH_PORT}
    ready :${READY_PORT}
    hosts {
        ${names.join("\n        ")}
        fallthrough
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa
    cache 5
}
`;
}

function deployment(): object {
  return {
    replicas: 1,
    selector: { matchLabels: LABELS },
    template: {
      metadata: { labels: LABELS },
      spec: {
        serviceAccountName: NAME,
        priorityClassName: "system-cluster-critical",
        dnsPolicy: "Default",
        containers: [
          {
            name: NAME,
            image: COREDNS_IMAGE,
            imagePullPolicy: "Never",
            args: ["-conf", "/etc/coredns/Corefile"],
            volumeMounts: [{ name: "config", mountPath: "/etc/coredns", readOnly: true }],
            // Quick to notice that it is up; each probe costs an emulated node something from then on.
            startupProbe: {
              httpGet: { path: "/ready", port: READY_PORT },
              periodSeconds: 1,
              failureThreshold: 180,
            },
            readinessProbe: { httpGet: { path: "/ready", port: READY_PORT }, timeoutSeconds: 5 },
            livenessProbe: {
              httpGet: { path: "/health", port: HEALTH_PORT },
              periodSeconds: 30,
              timeoutSeconds: 10,
              failureThreshold: 10,
            },
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] },
            },
          },
        ],
        volumes: [{ name: "config", configMap: { name: NAME } }],
      },
    },
  };
}
