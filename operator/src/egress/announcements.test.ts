import type { Condition, EgressStatus, GatewayStatus } from "@egress-nat/crds";
import { describe, expect, test } from "vitest";
import { announcements } from "./announcements.ts";

function status(available: Condition["status"], degraded?: string): EgressStatus {
  const common = { lastTransitionTime: "2026-01-01T00:00:00Z" };
  return {
    conditions: [
      {
        type: "Available",
        status: available,
        reason: "Any",
        message: "1 of 2 gateways are available",
        ...common,
      },
      {
        type: "Degraded",
        status: degraded ? "True" : "False",
        reason: "FailedCreate",
        message: degraded ?? "",
        ...common,
      },
    ],
  };
}

const told = (...input: Parameters<typeof announcements>) =>
  announcements(...input).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);

describe("events about an Egress", () => {
  test("say what was created", () => {
    expect(told(undefined, status("False"), ["Service", "Deployment"])).toEqual([
      "Normal Created: created Service, Deployment",
    ]);
  });

  test("say how it was scaled", () => {
    expect(told(undefined, status("False"), [], [2, 5])).toEqual(["Normal Scaled: from 2 to 5 gateways"]);
    expect(told(undefined, status("False"), [], [2, 2])).toEqual([]);
    expect(told(undefined, status("False"), ["Deployment"], [undefined, 2])).toEqual([
      "Normal Created: created Deployment",
    ]);
  });

  test("say when the first gateway serves and when the last one is lost", () => {
    expect(told(status("False"), status("True"), [])).toEqual([
      "Normal Available: 1 of 2 gateways are available",
    ]);
    expect(told(status("True"), status("False"), [])).toEqual([
      "Warning Unavailable: 1 of 2 gateways are available",
    ]);
  });

  test("say which gateway is lost, but not which one ends as it should", () => {
    const gateways = (...states: GatewayStatus["state"][]): EgressStatus => ({
      gateways: states.map((state, index) => ({
        name: `nat-${index}`,
        node: `n${index}`,
        addresses: [],
        state,
      })),
    });
    expect(told(gateways("Ready", "Ready", "Down"), gateways("Down", "Draining", "Down"), [])).toEqual([
      "Warning GatewayLost: gateway nat-0 on node n0 takes no new flows any more",
    ]);
    expect(told(gateways("Suspect", "Down"), gateways("Down", "Suspect"), [])).toHaveLength(1);
  });

  test("say of a gateway that a node reports as lost which one, and what it misses", () => {
    const gateway = { name: "nat-0", node: "n0", addresses: [] };
    const reported = { state: "Down", reason: "no answer through the tunnel", reportedBy: "n7" } as const;
    const [before, after] = [
      { gateways: [{ ...gateway, state: "Ready" as const }] },
      { gateways: [{ ...gateway, ...reported }] },
    ];
    expect(told(before, after, [])).toEqual([
      "Warning GatewayLost: gateway nat-0 on node n0 takes no new flows any more: node n7 gets no answer through the tunnel",
    ]);
  });

  test("say what needs attention, and again only when that changes", () => {
    expect(told(status("True"), status("True", "quota"), [])).toEqual(["Warning FailedCreate: quota"]);
    expect(told(status("True", "quota"), status("True", "quota"), [])).toEqual([]);
    expect(told(status("True", "quota"), status("True", "policy"), [])).toEqual([
      "Warning FailedCreate: policy",
    ]);
  });
});
