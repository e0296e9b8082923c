import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { type AppliedOptions, isApplied, withDigest } from "./applied.ts";
import { loadCredentials } from "./credentials.ts";
import type { KubeObject, Resource } from "./resource.ts";
import { ResourceClient } from "./resource-client.ts";
import { silentLogger } from "./testing/silent-logger.ts";
import { createTransport, type Transport } from "./transport.ts";

const APPS = { group: "apps", version: "v1", namespaced: true };
const CORE = { group: "", version: "v1", namespaced: true };
const DEPLOYMENT: Resource = { ...APPS, plural: "deployments", kind: "Deployment" };
const SERVICE: Resource = { ...CORE, plural: "services", kind: "Service" };
const ROLE: Resource = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "roles",
  kind: "Role",
  namespaced: true,
};

const options: AppliedOptions = { fieldManager: "gardener", annotation: "garden.example.com/applied" };
const metadata = { namespace: "default", name: "applied" };

/** Everything in which a live object may differ from the applied one without anybody having touched it. */
const deployment = {
  metadata: {
    ...metadata,
    labels: { app: "applied" },
    ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "6f0b1c1e-0000-4000-8000-000000000000" }],
  },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: "applied" } },
    strategy: {},
    template: {
      metadata: { labels: { app: "applied" }, annotations: {} },
      spec: {
        nodeSelector: {},
        tolerations: [],
        initContainers: [],
        securityContext: {},
        containers: [
          {
            name: "egress",
            image: "example.com/image:1",
            args: ["--one", "--two"],
            ports: [{ containerPort: 8080, name: "http" }, { containerPort: 5555, protocol: "UDP" }],
            resources: { requests: { cpu: "1000m", memory: "1024Mi" }, limits: { cpu: 2 } },
            env: [{ name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }, { name: "EMPTY", value: "" }],
            volumeMounts: [{ name: "run", mountPath: "/run" }],
            readinessProbe: { httpGet: { path: "/readyz", port: "http" } },
            securityContext: { privileged: false, capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] } },
          },
          { name: "sidecar", image: "example.com/sidecar:1" },
        ],
        volumes: [{ name: "run", emptyDir: {} }],
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway", labelSelector: {} },
        ],
      },
    },
  },
};

const service = {
  metadata: { ...metadata, labels: { app: "applied" } },
  spec: {
    type: "ClusterIP",
    ipFamilyPolicy: "PreferDualStack",
    selector: { app: "applied" },
    ports: [{ name: "fou", port: 5555, targetPort: 5555, protocol: "UDP" }],
    sessionAffinity: "ClientIP",
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
  },
};

const role = {
  metadata,
  rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list"], resourceNames: ["one"] }],
};

let transport: Transport;

beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger: silentLogger });
});

afterAll(() => transport.close());

const clientOf = (resource: Resource) => new ResourceClient(transport, resource, (raw) => raw as KubeObject);

describe.each([
  { resource: DEPLOYMENT, object: deployment },
  { resource: SERVICE, object: service },
  { resource: ROLE, object: role },
])("a $resource.kind", ({ resource, object }) => {
  const client = clientOf(resource);
  const wanted = withDigest(object, options.annotation);
  const apply = (changed: KubeObject = wanted) => client.apply(changed, { ...options, force: true });

  test("that was applied is known again, whatever the apiserver has filled in", async () => {
    await apply();
    const live = await client.get(metadata);
    console.log(JSON.stringify(live.metadata.managedFields, null, 1));
    expect(isApplied(live, wanted, options)).toBe(true);
    const again = await apply();
    expect(again.metadata.resourceVersion).toBe(live.metadata.resourceVersion);
  });
});
