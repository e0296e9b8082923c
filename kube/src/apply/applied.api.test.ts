import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { type KubeObject, namespacedResource, resourcePath } from "../objects/resource.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { createTransport } from "../transport/https-transport.ts";
import { loadCredentials } from "../transport/load-credentials.ts";
import type { Transport } from "../transport/transport.ts";
import { type AppliedOptions, isApplied, withDigest } from "./applied.ts";
import { ResourceClient } from "./resource-client.ts";

const DEPLOYMENT = namespacedResource("apps/v1", "deployments", "Deployment");
const SERVICE = namespacedResource("v1", "services", "Service");
const ROLE = namespacedResource("rbac.authorization.k8s.io/v1", "roles", "Role");

const options: AppliedOptions = { fieldManager: "gardener", annotation: "garden.example.com/applied" };
const metadata = { namespace: "default", name: "applied" };

/** Everything in which a live object may differ from the applied one without anybody having touched it. */
const deployment = {
  metadata: {
    ...metadata,
    labels: { app: "applied" },
    ownerReferences: [
      { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "6f0b1c1e-0000-4000-8000-000000000000" },
    ],
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
        securityContext: {},
        containers: [
          {
            name: "egress",
            image: "example.com/image:1",
            args: ["--one", "--two"],
            ports: [
              { containerPort: 8080, name: "http" },
              { containerPort: 5555, protocol: "UDP" },
            ],
            resources: { requests: { cpu: "1000m", memory: "1024Mi" }, limits: { cpu: 2 } },
            env: [
              { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
              { name: "EMPTY", value: "" },
            ],
            volumeMounts: [{ name: "run", mountPath: "/run" }],
            readinessProbe: { httpGet: { path: "/readyz", port: "http" } },
            securityContext: { privileged: false, capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] } },
          },
          { name: "sidecar", image: "example.com/sidecar:1" },
        ],
        volumes: [{ name: "run", emptyDir: {} }],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: "kubernetes.io/hostname",
            whenUnsatisfiable: "ScheduleAnyway",
            labelSelector: {},
          },
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

const merge = (patch: object) => ({ contentType: "application/merge-patch+json", patch });
const json = (...patch: object[]) => ({ contentType: "application/json-patch+json", patch });
const strategic = (patch: object) => ({ contentType: "application/strategic-merge-patch+json", patch });

const cases = [
  {
    resource: DEPLOYMENT,
    object: deployment,
    // What the Deployment controller, autoscalers and people do without harm to what we own.
    foreign: [
      merge({ metadata: { annotations: { "deployment.kubernetes.io/revision": "1" } } }),
      merge({ spec: { revisionHistoryLimit: 3 } }),
    ],
    drift: [
      { what: "scaled by hand", ...merge({ spec: { replicas: 5 } }) },
      { what: "of which a label was removed", ...merge({ metadata: { labels: { app: null } } }) },
      {
        what: "of which the owner was removed",
        ...json({ op: "remove", path: "/metadata/ownerReferences" }),
      },
      { what: "of which the digest was removed", ...merge({ metadata: { annotations: null } }) },
      {
        what: "with another image",
        ...strategic({
          spec: { template: { spec: { containers: [{ name: "egress", image: "elsewhere:2" }] } } },
        }),
      },
      {
        what: "with another name for a port",
        ...json({ op: "replace", path: "/spec/template/spec/containers/0/ports/0/name", value: "web" }),
      },
      { what: "without a port", ...json({ op: "remove", path: "/spec/template/spec/containers/0/ports/1" }) },
      { what: "without a container", ...json({ op: "remove", path: "/spec/template/spec/containers/1" }) },
      {
        what: "with one more argument",
        ...json({ op: "add", path: "/spec/template/spec/containers/0/args/-", value: "--three" }),
      },
      {
        what: "with a toleration in a list that was applied empty",
        ...merge({ spec: { template: { spec: { tolerations: [{ operator: "Exists" }] } } } }),
      },
      {
        what: "with a default turned into something else inside a value of ours",
        ...json({
          op: "add",
          path: "/spec/template/spec/containers/0/env/0/valueFrom/fieldRef/fieldPath",
          value: "status.hostIP",
        }),
      },
    ],
    change: { ...deployment, spec: { ...deployment.spec, replicas: 2 } },
  },
  {
    resource: SERVICE,
    object: service,
    foreign: [
      merge({ spec: { externalTrafficPolicy: null } }),
      merge({ metadata: { labels: { team: "garden" } } }),
    ],
    drift: [
      {
        what: "with another affinity",
        ...merge({ spec: { sessionAffinity: "None", sessionAffinityConfig: null } }),
      },
      { what: "with another selector", ...merge({ spec: { selector: { app: "other" } } }) },
      {
        what: "with another target port",
        ...json({ op: "replace", path: "/spec/ports/0/targetPort", value: 1 }),
      },
    ],
    change: {
      ...service,
      spec: { ...service.spec, sessionAffinityConfig: { clientIP: { timeoutSeconds: 43200 } } },
    },
  },
  {
    resource: ROLE,
    object: role,
    foreign: [merge({ metadata: { annotations: { note: "seen" } } })],
    drift: [{ what: "with more rights", ...json({ op: "add", path: "/rules/0/verbs/-", value: "delete" }) }],
    change: { ...role, rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] }] },
  },
];

describe.each(cases)("a $resource.kind", ({ resource, object, foreign, drift, change }) => {
  let client: ResourceClient<KubeObject>;
  const wanted = withDigest(object, options.annotation);
  const apply = (changed: KubeObject = wanted) => client.apply(changed, { ...options, force: true });
  const path = resourcePath(resource, metadata);
  const edit = ({ contentType, patch }: { contentType: string; patch: object }) =>
    transport.request({
      method: "PATCH",
      path,
      query: { fieldManager: "somebody" },
      contentType,
      body: patch,
    });

  beforeAll(() => {
    client = new ResourceClient(transport, resource, (raw) => raw as KubeObject);
  });

  beforeEach(async () => {
    await client.delete(metadata).catch(() => undefined);
    await apply();
  });

  test("that was applied is known again, whatever the apiserver has filled in", async () => {
    const live = await client.get(metadata);
    expect(isApplied(live, wanted, options)).toBe(true);
    const again = await apply();
    expect(again.metadata.resourceVersion).toBe(live.metadata.resourceVersion);
  });

  test("that is created by apply is known again, too", async () => {
    await client.delete(metadata);
    expect(isApplied(await client.createByApply(wanted, options), wanted, options)).toBe(true);
  });

  test("that exists is not touched by who only wants to create it", async () => {
    const live = await client.get(metadata);
    await expect(client.createByApply(change, options)).rejects.toMatchObject({ code: "Conflict" });
    expect(await client.get(metadata)).toEqual(live);
  });

  test("is left alone when others change what is theirs", async () => {
    for (const edition of foreign) await edit(edition);
    expect(isApplied(await client.get(metadata), wanted, options)).toBe(true);
  });

  test("is applied again when something else is wanted", async () => {
    const next = withDigest(change, options.annotation);
    expect(isApplied(await client.get(metadata), next, options)).toBe(false);
    expect(isApplied(await apply(next), next, options)).toBe(true);
  });

  test.each(drift)("$what is applied again, and then left alone", async (edition) => {
    await edit(edition);
    expect(isApplied(await client.get(metadata), wanted, options)).toBe(false);
    expect(isApplied(await apply(), wanted, options)).toBe(true);
  });
});
