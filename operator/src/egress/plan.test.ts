import { EGRESS_LABEL, type Egress, OPERATOR, PAUSE_ROLLOUT_ANNOTATION } from "@egress-nat/crds";
import { describe, expect, test } from "vitest";
import { NO_CHILDREN, type ObservedChildren, type ObservedService } from "./observed.ts";
import { planEgress, type Step } from "./plan.ts";
import { deploymentOfRelease, manifestOf, SETTINGS } from "./testing/children.ts";
import { anEgress } from "./testing/egress.ts";

const EGRESS = anEgress({}, { status: { observedGeneration: 7 } });

const plan = (egress: Egress, children: Partial<ObservedChildren>): readonly Step[] =>
  planEgress({ egress, children: { ...NO_CHILDREN, ...children }, gateways: [] }, SETTINGS).steps;

/** The step for one child; undefined: none. */
const stepFor = (child: keyof ObservedChildren, egress: Egress, children: Partial<ObservedChildren>) =>
  plan(egress, children).find((step) => step.child === child);

/** The Service of an Egress, as somebody has left it. */
function serviceOf(egress: Egress, metadata: Partial<ObservedService["metadata"]> = {}): ObservedService {
  const { apiVersion, kind, metadata: applied } = manifestOf("service", egress);
  const { name, namespace, labels = {}, annotations = {}, ownerReferences = [] } = applied;
  return {
    ...{ apiVersion, kind, spec: { clusterIPs: ["10.96.0.7"] } },
    metadata: {
      ...{ name, namespace, uid: "s", resourceVersion: "1" },
      ...{ labels, annotations, ownerReferences, ...metadata },
    },
  };
}

const owner = (uid: string, kind = "Egress") => ({
  ...{ apiVersion: "coil.cybozu.com/v2", kind, name: "nat", uid, controller: true },
});

describe("the plan of an Egress", () => {
  test("without children is to make them all, the gateways last", () => {
    const steps = plan(anEgress({ podDisruptionBudget: { maxUnavailable: 1 } }), {});
    expect(steps.map(({ action, child }) => `${action} ${child}`)).toEqual([
      ...["create serviceAccount", "create role", "create roleBinding", "create service"],
      ...["create deployment", "create disruptionBudget"],
    ]);
  });

  test("is to put right a child that somebody has changed", () => {
    expect(stepFor("service", EGRESS, { service: serviceOf(EGRESS, { annotations: {} }) })?.action).toBe(
      "update",
    );
  });

  test("is to let gateways of a former account read on while they serve", () => {
    const changed = anEgress({ template: { spec: { serviceAccountName: "gateway", containers: [] } } });
    const applied = { manager: OPERATOR, operation: "Apply", fieldsV1: { "f:subjects": {} } };
    const { apiVersion, kind, metadata } = serviceOf(EGRESS, { managedFields: [applied] });
    const subjects = [{ kind: "ServiceAccount", name: "nat", namespace: "internet" }];
    const { deployment } = deploymentOfRelease(SETTINGS.image, EGRESS);
    const roleBinding = { apiVersion, kind, metadata, subjects };
    expect(stepFor("roleBinding", changed, { roleBinding, deployment })).toMatchObject({
      action: "update",
      manifest: { subjects: [{ ...subjects[0], name: "gateway" }, ...subjects] },
    });
  });

  test("is to leave alone what belongs to somebody else", () => {
    const service = serviceOf(EGRESS, { ownerReferences: [owner("5", "ConfigMap")] });
    expect(stepFor("service", EGRESS, { service })).toMatchObject({ action: "yield", observed: service });
  });

  test("is to wait until the child of a former Egress of that name is collected", () => {
    const service = serviceOf(EGRESS, { ownerReferences: [owner("5")] });
    expect(stepFor("service", EGRESS, { service })?.action).toBe("await");
  });

  test("is to delete a child that is not wanted any more, where it is its own", () => {
    const { metadata, apiVersion, kind } = serviceOf(EGRESS);
    const disruptionBudget = { apiVersion, kind, metadata };
    expect(stepFor("disruptionBudget", EGRESS, { disruptionBudget })?.action).toBe("delete");
    const others = { ...disruptionBudget, metadata: { ...metadata, ownerReferences: [] } };
    expect(stepFor("disruptionBudget", EGRESS, { disruptionBudget: others })).toBeUndefined();
  });

  test.each([
    ["its first spec", 1, undefined, undefined],
    ["a spec that was not looked at yet", 2, 1, "sweep"],
    ["a spec that was looked at", 2, 2, undefined],
  ])(
    "is to look for a child that has lost its label with %s accordingly",
    (_, generation, seen, expected) => {
      const status = seen === undefined ? {} : { status: { observedGeneration: seen } };
      const egress = anEgress({}, { metadata: { generation }, ...status });
      expect(stepFor("disruptionBudget", egress, {})?.action).toBe(expected);
    },
  );

  describe("whose gateways are of another release", () => {
    const former = deploymentOfRelease("gateway:0", EGRESS);
    const paused = { annotations: { [PAUSE_ROLLOUT_ANNOTATION]: "true" } };
    const UPGRADE = "coil.cybozu.com/upgrade";

    test("is to replace them when their turn has come, and to mark that as an upgrade", () => {
      const step = stepFor("deployment", EGRESS, former);
      expect(step).toMatchObject({ action: "upgrade", adjustment: undefined });
      expect(step).toHaveProperty(["manifest", "metadata", "annotations", UPGRADE]);
    });

    test("is to mark none that nobody is served by: it keeps no other one waiting", () => {
      const step = stepFor("deployment", EGRESS, deploymentOfRelease("gateway:0", EGRESS, 0));
      expect(step?.action).toBe("upgrade");
      expect(step).not.toHaveProperty(["manifest", "metadata", "annotations", UPGRADE]);
    });

    test("is to hold them while their author has paused that, but for how many they are", () => {
      const egress = anEgress({ replicas: 5 }, { metadata: paused, status: { observedGeneration: 7 } });
      expect(stepFor("deployment", egress, former)).toMatchObject({
        ...{ action: "hold", adjustment: { replicas: 5 } },
      });
    });

    test("is to replace them at once where their author wants others anyway", () => {
      const egress = anEgress({ drainTimeoutSeconds: 1 }, { metadata: paused });
      expect(stepFor("deployment", egress, former)?.action).toBe("update");
    });

    test("is to replace them at once where somebody has taken their annotations away", () => {
      const { deployment = expect.fail() } = former;
      const metadata = { ...deployment.metadata, annotations: {} };
      expect(stepFor("deployment", EGRESS, { deployment: { ...deployment, metadata } })?.action).toBe(
        "update",
      );
    });
  });

  test("that is not understood is nothing, and only its own children count", () => {
    const service = serviceOf(EGRESS, {
      ownerReferences: [owner("5", "ConfigMap")],
      labels: { [EGRESS_LABEL]: "nat" },
    });
    const { deployment } = deploymentOfRelease("gateway:0", EGRESS);
    const egress = { ...EGRESS, invalid: "spec.destinations[0]: not a CIDR" };
    expect(
      planEgress({ egress, children: { ...NO_CHILDREN, service, deployment }, gateways: [] }, SETTINGS),
    ).toEqual({
      steps: [],
      children: { ...NO_CHILDREN, deployment },
    });
  });
});
