import { expect, test } from "vitest";
import { Egress } from "./egress.ts";
import { EgressClientSlice } from "./egress-client-slice.ts";
import { type Schema, structuralSchema } from "./generate/structural.ts";
import { missingFields } from "./served-fields.ts";

/** https://github.com/cybozu-go/coil/blob/main/v2/config/crd/bases/coil.cybozu.com_egresses.yaml, in short */
const COIL: Schema = {
  properties: {
    apiVersion: {},
    kind: {},
    metadata: {},
    spec: {
      properties: {
        destinations: { items: { type: "string" } },
        replicas: {},
        strategy: {
          properties: { type: {}, rollingUpdate: { properties: { maxSurge: {}, maxUnavailable: {} } } },
        },
        template: {},
        sessionAffinity: {},
        sessionAffinityConfig: { properties: { clientIP: { properties: { timeoutSeconds: {} } } } },
        fouSourcePortAuto: {},
        podDisruptionBudget: { properties: { minAvailable: {}, maxUnavailable: {} } },
      },
    },
    status: { properties: { selector: {}, replicas: {} } },
  },
};

test("a definition of this release lacks nothing", () => {
  expect(missingFields(Egress, structuralSchema(Egress))).toEqual([]);
  expect(missingFields(EgressClientSlice, structuralSchema(EgressClientSlice))).toEqual([]);
});

test("coil's lacks what only this product has", () => {
  const missing = missingFields(Egress, COIL);
  expect(missing).toEqual(
    expect.arrayContaining(["spec.allowedNamespaces", "status.conditions", "status.serviceIPs"]),
  );
  expect(missing).not.toContain("spec.destinations");
  expect(missing.filter((path) => path.startsWith("status.conditions."))).toEqual([]);
});

test("an earlier release's lacks what was added to the entries of a list", () => {
  const ours = structuralSchema(EgressClientSlice);
  const { addedAt: _, ...earlier } = ours.properties?.clients?.items?.properties ?? {};
  const clients = { ...ours.properties?.clients, items: { properties: earlier } };
  expect(missingFields(EgressClientSlice, { ...ours, properties: { ...ours.properties, clients } })).toEqual([
    "clients[].addedAt",
  ]);
});
