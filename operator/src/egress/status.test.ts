import { describe, expect, test } from "vitest";
import type { ObservedDeployment, ObservedService } from "./observed.ts";
import { egressStatus, type Problem, type StatusInput } from "./status.ts";
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
  gateways: [],
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
    expect(conditionsOf(["::/0"])?.[2]).toMatchObject({ status: "True", reason: "FamilyNotAvailable" });
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
    expect(degraded?.message).toMatch(/networks of 10\.88\.0\.5 .* clusterRanges of the chart/);
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
    ]);
  });
});
