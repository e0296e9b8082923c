import { Egress, orInvalid } from "@egress-nat/crds";
import { describe, expect, test } from "vitest";
import type { ObservedDeployment, ObservedService } from "./observed.ts";
import type { Problem } from "./standard-conditions.ts";
import { egressStatus, type StatusInput } from "./status.ts";
import { anEgress } from "./testing/egress.ts";

const NOW = "2026-01-02T03:04:05Z";
const METADATA = { name: "nat", namespace: "internet", uid: "u", resourceVersion: "1" };

function deployment(status: Partial<ObservedDeployment["status"]>, generation = 1): ObservedDeployment {
  const none = {
    observedGeneration: 1,
    replicas: 0,
    readyReplicas: 0,
    availableReplicas: 0,
    updatedReplicas: 0,
  };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...METADATA, generation },
    spec: { replicas: 1 },
    status: { ...none, conditions: [], ...status },
  };
}

const all = (count: number) => ({
  replicas: count,
  readyReplicas: count,
  availableReplicas: count,
  updatedReplicas: count,
});

const service: ObservedService = {
  apiVersion: "v1",
  kind: "Service",
  metadata: METADATA,
  spec: { clusterIPs: ["10.96.0.7", "fd00:96::7"] },
};

const NOTHING: StatusInput = {
  deployment: undefined,
  service: undefined,
  problems: [],
  failure: undefined,
  hold: undefined,
  gateways: [],
  gatewayReasons: new Map(),
  gatewayReports: [],
  silentNodes: new Set(),
  clients: 0,
  isOutside: () => false,
  allowedNamespaces: undefined,
};

function conditions(spec: object, seen: ObservedDeployment | undefined, problems: readonly Problem[] = []) {
  const status = egressStatus(anEgress(spec), { ...NOTHING, deployment: seen, service, problems }, NOW);
  return Object.fromEntries(
    (status.conditions ?? []).map(({ type, status, reason }) => [type, `${status} ${reason}`]),
  );
}

describe("the status of an Egress", () => {
  test("counts gateways and says how autoscalers and clients find them", () => {
    expect(
      egressStatus(anEgress({}), { ...NOTHING, deployment: deployment(all(1)), service }, NOW),
    ).toMatchObject({
      observedGeneration: 7,
      replicas: 1,
      readyReplicas: 1,
      clients: 0,
      selector: "coil.cybozu.com/egress=nat",
      serviceIPs: ["10.96.0.7", "fd00:96::7"],
    });
  });

  test.each([
    ["before there is a Deployment", {}, undefined, "False NoGateway", "True Creating"],
    [
      "while the first gateway starts",
      {},
      deployment({ replicas: 1, updatedReplicas: 1 }),
      "False NoGateway",
      "True RollingOut",
    ],
    [
      "when all gateways serve",
      { replicas: 2 },
      deployment(all(2)),
      "True GatewaysAvailable",
      "False Complete",
    ],
    [
      "while an old gateway is replaced",
      { replicas: 2 },
      deployment({ ...all(2), updatedReplicas: 1 }),
      "True GatewaysAvailable",
      "True RollingOut",
    ],
    [
      "before a change is seen",
      { replicas: 2 },
      deployment(all(2), 2),
      "True GatewaysAvailable",
      "True RollingOut",
    ],
    ["scaled to zero", { replicas: 0 }, deployment({}), "False ScaledToZero", "False Complete"],
  ])("%s", (_, spec, seen, available, progressing) => {
    expect(conditions(spec, seen)).toEqual({
      Available: available,
      Progressing: progressing,
      Degraded: "False AsExpected",
      Ready: available.replace("False ScaledToZero", "True ScaledToZero"),
      ...(progressing.startsWith("True") && { Reconciling: progressing }),
    });
  });

  test("is not complete where a change was refused, though all gateways serve", () => {
    const problems = [{ reason: "ChildRefused", message: "no template of that kind" }];
    const status = egressStatus(
      anEgress({}),
      { ...NOTHING, deployment: deployment(all(1)), service, problems },
      NOW,
    );
    expect(status.conditions?.find(({ type }) => type === "Progressing")).toMatchObject({
      ...{ status: "False", reason: "ChildRefused" },
      message: "all 1 gateways are available, and a change was refused: no template of that kind",
    });
  });

  test("says why pods are refused, and what to do", () => {
    const message =
      'pods "nat-1" is forbidden: violates PodSecurity "baseline:latest": non-default capabilities';
    const refused = deployment({
      conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message }],
    });
    const status = egressStatus(anEgress({}), { ...NOTHING, deployment: refused, service }, NOW);
    const degraded = status.conditions?.find(({ type }) => type === "Degraded");
    expect(degraded).toMatchObject({ status: "True", reason: "FailedCreate" });
    expect(degraded?.message).toContain(message);
    expect(degraded?.message).toContain(
      "kubectl label namespace internet pod-security.kubernetes.io/enforce=privileged",
    );
  });

  test("names a rollout that has stalled", () => {
    const conditionsOfDeployment = [
      { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded", message: "has timed out" },
    ];
    expect(conditions({}, deployment({ conditions: conditionsOfDeployment })).Degraded).toBe(
      "True ProgressDeadlineExceeded",
    );
  });

  test.each([
    ["NameConflict", { Ready: "False NameConflict", Stalled: "True NameConflict" }],
    ["ChildRefused", { Ready: "False ChildRefused", Stalled: "True ChildRefused" }],
    ["ClusterRangesIncomplete", { Ready: "False NoGateway", Reconciling: "True RollingOut" }],
  ])("tells those who wait whether it goes on by itself after %s", (reason, expected) => {
    const starting = deployment({ replicas: 1, updatedReplicas: 1 });
    const {
      Available: _,
      Progressing: __,
      Degraded: ___,
      ...standard
    } = conditions({}, starting, [{ reason, message: "why" }]);
    expect(standard).toEqual(expected);
  });

  test("says that no namespace has the labels of its selector", () => {
    const input = { ...NOTHING, deployment: deployment(all(1)), service };
    const messages = (allowedNamespaces: readonly string[]) =>
      egressStatus(anEgress({ allowedNamespaces: {} }), { ...input, allowedNamespaces }, NOW)
        .conditions?.filter(({ type }) => type === "Available" || type === "Ready")
        .map(({ status, message }) => `${status} ${message}`);
    const told =
      "True 1 of 1 gateways are available; spec.allowedNamespaces selects no namespace, so no pod may be a client: label a namespace, or change it";
    expect(messages([])).toEqual([told, told]);
    expect(messages(["apps"])).toEqual(Array(2).fill("True 1 of 1 gateways are available"));
  });

  test("says what gateways that are not ready say of it, and that clients go on by the others", () => {
    const seen = { nodeName: "n1", serving: false, terminating: false };
    const gateways = ["nat-1", "nat-2", "nat-3"].map((name) => ({
      ...{ ...seen, name, ready: name === "nat-3" },
      addresses: ["10.244.1.7"],
    }));
    const gatewayReasons = new Map(gateways.map(({ name }) => [name, "net.ipv4.ip_forward is 0"]));
    const counts = { ...all(3), readyReplicas: 1, availableReplicas: 1 };
    const input = { ...NOTHING, deployment: deployment(counts), service, gateways, gatewayReasons };
    const status = egressStatus(anEgress({ replicas: 3 }), input, NOW);
    expect(status.gateways?.map(({ reason }) => reason)).toEqual([
      "net.ipv4.ip_forward is 0",
      "net.ipv4.ip_forward is 0",
      undefined,
    ]);
    const condition = (type: string) => status.conditions?.find((each) => each.type === type);
    expect(condition("Degraded")).toMatchObject({
      status: "True",
      reason: "GatewayNotReady",
      message: "nat-1, nat-2 are not ready: net.ipv4.ip_forward is 0",
    });
    expect(condition("Ready")?.status).toBe("True");
    expect(condition("Stalled")).toBeUndefined();
  });

  test("says of a gateway what a node reports, without a condition", () => {
    const gateways = [
      {
        ...{ name: "nat-1", nodeName: "n1", addresses: ["10.244.1.7"] },
        ready: true,
        serving: true,
        terminating: false,
      },
    ];
    const report = { gateway: "nat-1", node: "n7", state: "Down", since: NOW } as const;
    const input = { ...NOTHING, deployment: deployment(all(1)), service, gateways, gatewayReports: [report] };
    const status = egressStatus(anEgress({}), input, NOW);
    expect(status.gateways).toMatchObject([{ state: "Down", reportedBy: "n7" }]);
    expect(status.conditions?.find(({ type }) => type === "Degraded")?.status).toBe("False");
  });

  test("of one that is not understood tells of the gateways that are left, and that nothing goes on", () => {
    const egress = orInvalid(Egress)({
      metadata: anEgress({}).metadata,
      spec: { destinations: ["192.0.2.0/33"] },
      status: { observedGeneration: 6 },
    });
    const status = egressStatus(egress, { ...NOTHING, deployment: deployment(all(1)), service }, NOW);
    expect(status).toMatchObject({
      observedGeneration: 7,
      replicas: 1,
      serviceIPs: ["10.96.0.7", "fd00:96::7"],
    });
    expect(status.conditions?.map(({ type, status, reason }) => `${type}: ${status} ${reason}`)).toEqual([
      "Available: True GatewaysAvailable",
      "Progressing: False InvalidSpec",
      "Degraded: True InvalidSpec",
      "Ready: False InvalidSpec",
      "Stalled: True InvalidSpec",
    ]);
  });

  test("says that the API server fails for the moment, and does not speak of a spec that is not applied yet", () => {
    const egress = anEgress({}, { status: { observedGeneration: 6 } });
    const failure = "PATCH: 500 InternalError: etcdserver: leader changed";
    const input = { ...NOTHING, deployment: deployment(all(1)), service, failure };
    const status = egressStatus(egress, input, NOW);
    expect(status.observedGeneration).toBe(6);
    for (const { observedGeneration } of status.conditions ?? []) expect(observedGeneration).toBe(6);
    expect(status.conditions?.map(({ type, status, reason }) => `${type}: ${status} ${reason}`)).toEqual([
      "Available: True GatewaysAvailable",
      "Progressing: True Retrying",
      "Degraded: False AsExpected",
      "Ready: True GatewaysAvailable",
      "Reconciling: True Retrying",
    ]);
    expect(status.conditions?.[1]?.message).toContain(failure);
    const first = egressStatus(anEgress({}), input, NOW);
    for (const condition of first.conditions ?? [])
      expect(condition).not.toHaveProperty("observedGeneration");
  });

  test.each([
    ["that goes on to fail, which may pass", [], "Reconciling", "True RollingOut", "ChildRefused"],
    [
      "that goes on to fail beside what does not pass",
      ["NameConflict"],
      "Stalled",
      "True NameConflict",
      "NameConflict",
    ],
  ])("tells those who wait of a write %s", (_, others, type, expected, ready) => {
    const starting = deployment({ replicas: 1, updatedReplicas: 1 });
    const retried: Problem = { reason: "ChildRefused", message: "why", isRetried: true };
    const problems = [retried, ...others.map((reason) => ({ reason, message: "why" }))];
    const { Ready, Stalled, Reconciling } = conditions({}, starting, problems);
    expect({ Ready, Stalled, Reconciling }).toEqual({ Ready: `False ${ready}`, [type]: expected });
  });

  test("says that gateways serve nobody while their Service has no address", () => {
    const input = { ...NOTHING, deployment: deployment(all(2)) };
    const status = egressStatus(anEgress({ replicas: 2 }), input, NOW);
    const condition = (type: string) => status.conditions?.find((each) => each.type === type);
    expect(condition("Available")).toMatchObject({
      status: "False",
      reason: "NoServiceAddress",
      message:
        "2 of 2 gateways are available; clients reach none of them, because their Service has no address",
    });
    expect(condition("Ready")).toMatchObject({ status: "False", reason: "NoServiceAddress" });
  });

  test("names a conflict", () => {
    const problem: Problem = { reason: "NameConflict", message: "Service internet/nat exists" };
    expect(conditions({}, undefined, [problem]).Degraded).toBe("True NameConflict");
  });

  test("says which destinations are of a family that the cluster does not have", () => {
    const onlyIpv4 = { ...service, spec: { clusterIPs: ["10.96.0.7"] } };
    const conditionsOf = (destinations: readonly string[]) => {
      const input = { ...NOTHING, deployment: deployment(all(1)), service: onlyIpv4 };
      return egressStatus(anEgress({ destinations }), input, NOW).conditions;
    };
    const both = conditionsOf(["0.0.0.0/0", "::/0"]);
    expect(both?.[0]).toMatchObject({
      status: "True",
      message: expect.stringContaining("destinations of IPv6 are not served"),
    });
    expect(both?.[2]).toMatchObject({ type: "Degraded", status: "False" });
    const message = expect.stringContaining("all destinations are IPv6, but the Service has no such address");
    expect(conditionsOf(["::/0"])?.[2]).toMatchObject({
      status: "True",
      reason: "FamilyNotAvailable",
      message,
    });
  });

  test("says which gateways are in no network that is known to be the cluster's", () => {
    const ready = { nodeName: "node-1", ready: true, serving: true, terminating: false };
    const gateways = [
      { ...ready, name: "nat-1", addresses: ["10.244.1.7"] },
      { ...ready, name: "nat-2", addresses: ["10.88.0.5"] },
    ];
    const isOutside = (address: string) => address.startsWith("10.88.");
    const status = egressStatus(
      anEgress({}),
      { ...NOTHING, deployment: deployment(all(2)), service, gateways, isOutside },
      NOW,
    );
    const degraded = status.conditions?.find(({ type }) => type === "Degraded");
    expect(degraded).toMatchObject({ status: "True", reason: "ClusterRangesIncomplete" });
    expect(degraded?.message).toMatch(/10\.88\.0\.5 are in no known network .* clusterRanges of the chart/);
  });

  test("keeps the time of a condition until its status changes", () => {
    const before = "2025-01-01T00:00:00Z";
    const first = egressStatus(anEgress({}), { ...NOTHING, service }, before);
    const egress = anEgress({}, { status: first });
    const later = egressStatus(egress, { ...NOTHING, deployment: deployment(all(1)), service }, NOW);
    expect(later.conditions?.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ["Available", NOW],
      ["Progressing", NOW],
      ["Degraded", before],
      ["Ready", NOW],
    ]);
  });
});
