import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayEnvironment, selects } from "@egress-nat/crds";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { anEgress } from "../testing/egress.ts";
import { desiredChildren, type GatewaySettings } from "./index.ts";

const SETTINGS: GatewaySettings = {
  image: "registry.example/egress-nat-egress-pod:1.0",
  imagePullPolicy: "IfNotPresent",
  clusterRangesNamespace: "egress-nat",
  logLevel: "info",
};

/** The objects as `kubectl get -o yaml` would show them: golden files that a person can read. */
function yaml(spec: object): string {
  const children = Object.values(desiredChildren(anEgress(spec), SETTINGS));
  return children
    .flatMap((child) => (child === undefined ? [] : [stringify(child, { aliasDuplicateObjects: false })]))
    .join("---\n");
}

describe("the children of an Egress", () => {
  test("are six objects with the defaults of a gateway", async () => {
    await expect(yaml({ podDisruptionBudget: { maxUnavailable: 1 } })).toMatchFileSnapshot(
      "testdata/default.yaml",
    );
  });

  test("keep what the template says and complete its container `egress`", async () => {
    const spec = {
      replicas: 3,
      strategy: { type: "Recreate" },
      sessionAffinity: "None",
      podDisruptionBudget: { minAvailable: "50%" },
      template: {
        metadata: {
          labels: { team: "network" },
          annotations: { "prometheus.io/scrape": "true" },
        },
        spec: {
          serviceAccountName: "gateway",
          priorityClassName: "important",
          nodeSelector: { zone: "a" },
          tolerations: [{ operator: "Exists" }],
          terminationGracePeriodSeconds: 120,
          topologySpreadConstraints: [
            { topologyKey: "zone", maxSkew: 2, whenUnsatisfiable: "DoNotSchedule" },
          ],
          initContainers: [{ name: "prepare", image: "prepare:1" }],
          volumes: [{ name: "scratch", emptyDir: {} }],
          containers: [
            { name: "logger", image: "logger:1" },
            {
              name: "egress",
              image: "own-gateway:2",
              env: [
                { name: "EGRESS_NAME", value: "forged" },
                { name: "HTTP_PROXY", value: "http://proxy" },
              ],
              ports: [{ name: "own", containerPort: 9000, protocol: "TCP" }],
              resources: { limits: { memory: "1Gi" } },
              securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "gateway.json" } },
              volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
            },
          ],
        },
      },
    };
    await expect(yaml(spec)).toMatchFileSnapshot("testdata/template.yaml");
  });

  test.each([
    ["by default", {}, { maxSurge: "25%", maxUnavailable: 0 }],
    ["with a surge of its own", { maxSurge: 3 }, { maxSurge: 3, maxUnavailable: 0 }],
    ["without a surge", { maxSurge: 0 }, { maxSurge: 0, maxUnavailable: "25%" }],
    ["without a surge, by percentage", { maxSurge: "0%" }, { maxSurge: "0%", maxUnavailable: "25%" }],
    ["where some may be unavailable", { maxUnavailable: 1 }, { maxSurge: "25%", maxUnavailable: 1 }],
    ["with limits of its own", { maxSurge: 0, maxUnavailable: 2 }, { maxSurge: 0, maxUnavailable: 2 }],
  ])(
    "replace gateways only when new ones are ready, or as the author wants it: %s",
    (_, rollingUpdate, limits) => {
      const { deployment } = desiredChildren(anEgress({ strategy: { rollingUpdate } }), SETTINGS);
      expect(deployment?.spec).toMatchObject({ strategy: { type: "RollingUpdate", rollingUpdate: limits } });
    },
  );

  test("tell gateways all that they read from their environment", () => {
    const { deployment } = desiredChildren(anEgress({}), SETTINGS);
    const [container] = parse(stringify(deployment)).spec.template.spec.containers;
    const told = container.env.map(({ name }: { name: string }) => name);
    expect(told).toEqual(expect.arrayContaining(Object.keys(GatewayEnvironment.shape)));
  });

  test.each([
    ["that of the Egress", undefined, "60"],
    ["what a template's own grace period leaves of it", 120, "105"],
    ["half of a short one", 10, "5"],
    ["none of one that Kubernetes makes a second of", -1, "0"],
  ])("tell gateways how long they may drain: %s", (_, terminationGracePeriodSeconds, told) => {
    const spec = { containers: [], ...(terminationGracePeriodSeconds && { terminationGracePeriodSeconds }) };
    const egress = anEgress({ drainTimeoutSeconds: 60, template: { spec } });
    const { deployment } = desiredChildren(egress, SETTINGS);
    const { env } = parse(stringify(deployment)).spec.template.spec.containers[0];
    const { value } = env.find(({ name }: { name: string }) => name === "DRAIN_TIMEOUT_SECONDS");
    expect(value).toBe(told);
  });

  test("are gateways that the sample of a NetworkPolicy selects, whatever labels their template has", async () => {
    const sample = join(import.meta.dirname, "../../../../config/samples/gateway-network-policy.yaml");
    const { podSelector } = parse(await readFile(sample, "utf8")).spec;
    const template = { metadata: { labels: { "app.kubernetes.io/name": "mine" } } };
    for (const spec of [{}, { template }]) {
      const { deployment } = desiredChildren(anEgress(spec), SETTINGS);
      const { labels } = parse(stringify(deployment)).spec.template.metadata;
      expect(selects(podSelector, labels)).toBe(true);
    }
  });

  test("have no PodDisruptionBudget unless the Egress asks for one", () => {
    expect(desiredChildren(anEgress({}), SETTINGS).disruptionBudget).toBeUndefined();
  });

  test.each([
    ["its own timeout", { sessionAffinityConfig: { clientIP: { timeoutSeconds: 43200 } } }, 43200],
    ["the default of Kubernetes", {}, 10800],
  ])("give the Service %s", (_, spec, timeoutSeconds) => {
    const { service } = desiredChildren(anEgress(spec), SETTINGS);
    expect(service?.spec).toMatchObject({
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds } },
    });
  });

  test("belong to the Egress, so that they go with it", () => {
    const children = Object.values(
      desiredChildren(anEgress({ podDisruptionBudget: { minAvailable: 1 } }), SETTINGS),
    );
    expect(children.map((child) => child?.metadata.ownerReferences?.map(({ uid }) => uid))).toEqual(
      Array(6).fill([anEgress({}).metadata.uid]),
    );
  });

  test("run no privileged container and add no capability but NET_ADMIN and NET_RAW", () => {
    const text = yaml({});
    expect(text).not.toMatch(/privileged: true|allowPrivilegeEscalation: true/);
    expect(
      text
        .match(/add:\n(\s+- \w+\n)+/)?.[0]
        .trim()
        .split(/\s+- /),
    ).toEqual(["add:", "NET_ADMIN", "NET_RAW"]);
  });
});
