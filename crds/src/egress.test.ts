import { describe, expect, test } from "vitest";
import { Egress } from "./egress.ts";
import { EGRESS_CASES } from "./testing/egress-cases.ts";

const metadata = { name: "nat", namespace: "internet", uid: "u", generation: 1 };

describe("zod", () => {
  const cases = EGRESS_CASES.filter(({ onlyServer }) => !onlyServer);

  test.each(cases.filter(({ refusal }) => refusal === undefined))("accepts $title", ({ spec }) => {
    expect(() => Egress.parse({ metadata, spec })).not.toThrow();
  });

  test.each(cases.filter(({ refusal }) => refusal !== undefined))("refuses $title", ({ spec }) => {
    expect(Egress.safeParse({ metadata, spec }).success).toBe(false);
  });

  test("says the same as the API server where the rule is ours", () => {
    const result = Egress.safeParse({ metadata, spec: { destinations: ["10.0.0.0/33"] } });
    expect(result.error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`)).toEqual([
      'spec.destinations.0: "10.0.0.0/33" is not a CIDR: write an address and a prefix length, like 192.0.2.0/24 or 2001:db8::/32',
    ]);
  });

  test("fills in the defaults of the CRD", () => {
    expect(Egress.parse({ metadata, spec: { destinations: ["::/0"] } }).spec).toEqual({
      destinations: ["::/0"],
      replicas: 1,
      sessionAffinity: "ClientIP",
      fouSourcePortAuto: false,
      originatingOnly: true,
      clientStartup: "WaitForGateway",
      drainTimeoutSeconds: 300,
      gatewaySelection: "Service",
      natBackend: "nftables",
    });
  });
});
