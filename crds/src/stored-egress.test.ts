import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Egress, EgressSpec } from "./egress.ts";
import { ObjectMeta } from "./object-meta.ts";
import { isInvalid, orInvalid } from "./stored-egress.ts";

const metadata = { name: "nat", namespace: "internet", uid: "u", generation: 3 };
const read = orInvalid(Egress);

describe("an Egress that is stored", () => {
  test("is read as it is where it is understood", () => {
    const egress = { metadata, spec: { destinations: ["0.0.0.0/0"] }, status: { clients: 2 } };
    expect(read(egress)).toEqual(Egress.parse(egress));
    expect(isInvalid(read(egress))).toBe(false);
  });

  test("names each field that is not understood, and keeps the others", () => {
    const egress = read({
      metadata,
      spec: {
        destinations: ["192.0.2.0/24", "192.0.2.0/33"],
        drainTimeoutSeconds: 60,
        sessionAffinity: "Cookie",
        allowedNamespaces: { matchLabels: { team: "payments" } },
      },
      status: { serviceIPs: ["10.96.0.7"] },
    });
    expect(egress).toMatchObject({
      metadata,
      spec: { drainTimeoutSeconds: 60, allowedNamespaces: { matchLabels: { team: "payments" } } },
      status: { serviceIPs: ["10.96.0.7"] },
      invalid: expect.stringMatching(
        /^spec\.destinations\[1\]: "192.0.2.0\/33" is not a CIDR: .*; spec\.sessionAffinity: /,
      ),
    });
    expect(egress.spec).not.toHaveProperty("destinations", expect.anything());
  });

  test("is invalid by a rule over several fields as well", () => {
    const spec = { destinations: ["192.0.2.0/24"], excludedDestinations: ["192.0.2.0/24"] };
    expect(read({ metadata, spec })).toMatchObject({
      invalid: expect.stringMatching(/^spec: excludedDestinations/),
    });
  });

  test.each([undefined, null, "no spec", []])("may have any spec at all: %j", (spec) => {
    expect(read({ metadata, spec })).toMatchObject({ metadata, invalid: expect.stringMatching(/^spec/) });
  });

  test("is understood whatever its status is, because the operator writes it anew", () => {
    const egress = { metadata, spec: { destinations: ["0.0.0.0/0"] } };
    expect(read({ ...egress, status: "as it should be" })).toEqual(Egress.parse(egress));
    expect(read({ ...egress, status: { clients: "many" } })).toEqual(Egress.parse({ ...egress, status: {} }));
  });

  test("is not taken for one without a list of namespaces, or of an older operator, by what is not understood", () => {
    const egress = { metadata, spec: { destinations: ["0.0.0.0/0"] } };
    const known = { observedGeneration: 3, serviceIPs: ["10.96.0.7"] };
    expect(read({ ...egress, status: { ...known, allowedNamespaces: { some: true } } }).status).toEqual({
      serviceIPs: ["10.96.0.7"],
    });
    expect(read({ ...egress, status: { ...known, serviceUID: 7 } }).status).toEqual({
      observedGeneration: 3,
    });
  });

  test.each(["0.0.0.0/0", "0.0.0.0/33"])(
    "keeps those fields of its status that are understood, with destination %s",
    (destination) => {
      const gateway = { name: "nat-1", addresses: ["192.0.2.1"], state: "of a later release" };
      const known = { serviceIPs: ["10.96.0.7"], serviceUID: "s", allowedNamespaces: ["apps"] };
      const status = { ...known, gateways: [gateway], conditions: "of a later release" };
      const egress = read({ metadata, spec: { destinations: [destination] }, status });
      expect(egress.status).toStrictEqual(known);
    },
  );

  test("is understood by a program that does not use what is wrong", () => {
    const destinations = orInvalid(
      z.object({ metadata: ObjectMeta, spec: EgressSpec.pick({ destinations: true }) }),
    );
    const spec = { destinations: ["0.0.0.0/0"], sessionAffinity: "Cookie" };
    expect(isInvalid(destinations({ metadata, spec }))).toBe(false);
  });
});
