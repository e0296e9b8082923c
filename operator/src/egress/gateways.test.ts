import { describe, expect, test } from "vitest";
import { type AgentReport, gatewayStates, gatewayStatuses } from "./gateways.ts";

const NOW = "2026-01-02T03:04:05Z";
const EARLIER = "2026-01-02T03:04:00Z";
const common = { nodeName: "n1", addresses: ["10.244.1.7", "fd00:244:1::7"] };
const node = { node: "n1", addresses: common.addresses };
const ready = { ready: true, serving: true, terminating: false };
const draining = { ready: false, serving: true, terminating: true };
const down = { ready: false, serving: false, terminating: false };

const NONE: ReadonlySet<string> = new Set();

test("gateways are listed by name, with what they do", () => {
  const gateways = [
    { ...common, name: "nat-c", ...ready },
    { ...common, name: "nat-b", ...draining },
    { ...common, name: "nat-a", ...down },
    { ...common, name: "nat-d", nodeName: undefined, ready: false, serving: false, terminating: true },
  ];
  const gatewayReasons = new Map([
    ["nat-a", "ip_forward is 0"],
    ["nat-c", "of a time before"],
  ]);
  expect(
    gatewayStatuses({ gateways, gatewayReasons, gatewayReports: [], silentNodes: NONE }, [], NOW),
  ).toEqual([
    { ...node, name: "nat-a", state: "Down", since: NOW, reason: "ip_forward is 0" },
    { ...node, name: "nat-b", state: "Draining", since: NOW },
    { ...node, name: "nat-c", state: "Ready", since: NOW },
    { addresses: common.addresses, name: "nat-d", state: "Down", since: NOW },
  ]);
});

test("the addresses of a gateway are in one order, whichever slice was read first", () => {
  const addressesOf = (addresses: readonly string[]) => {
    const gateways = [{ ...common, ...ready, name: "nat-a", addresses }];
    const seen = { gateways, gatewayReasons: new Map(), gatewayReports: [], silentNodes: NONE };
    return gatewayStatuses(seen, [], NOW).flatMap((gateway) => gateway.addresses);
  };
  expect(addressesOf(common.addresses.toReversed())).toEqual(addressesOf(common.addresses));
});

test("gateways are counted by what they do", () => {
  const inStates = (...states: readonly ("Ready" | "Suspect" | "Down")[]) =>
    states.map((state, index) => ({ name: `nat-${index}`, addresses: [], state }));
  expect(gatewayStates(inStates("Suspect", "Ready", "Down", "Ready"))).toBe("2 Ready, 1 Suspect, 1 Down");
  expect(gatewayStates([])).toBe("");
});

test("gateways that have lost their way out are told apart from others that are down", () => {
  const reasons = ["", "uplink: no answer from 192.0.2.1", "no uplink"];
  const gateways = reasons.map((reason) => ({
    name: "nat-a",
    addresses: [],
    state: "Down" as const,
    reason,
  }));
  expect(gatewayStates(gateways)).toBe("2 Down, 1 Down: uplink");
});

test("the time of a state is that of its last change", () => {
  const seen = (conditions: typeof ready) => ({
    ...{ gateways: [{ ...common, name: "nat-a", ...conditions }] },
    ...{ gatewayReasons: new Map(), gatewayReports: [], silentNodes: NONE },
  });
  const before = gatewayStatuses(seen(ready), [], EARLIER);
  expect(gatewayStatuses(seen(ready), before, NOW)).toEqual(before);
  expect(gatewayStatuses(seen(draining), before, NOW)).toMatchObject([{ state: "Draining", since: NOW }]);
});

describe("a gateway that is told to end", () => {
  const seen = (conditions: typeof ready, silentNodes = NONE) => ({
    ...{ gateways: [{ ...common, name: "nat-a", ...conditions }], silentNodes },
    ...{ gatewayReasons: new Map(), gatewayReports: [] },
  });
  const ended = { ready: false, serving: false, terminating: true };
  const states = (...all: ReturnType<typeof seen>[]) => {
    let statuses: ReturnType<typeof gatewayStatuses> = [];
    return all.map((each) => {
      statuses = gatewayStatuses(each, statuses, NOW);
      return statuses[0]?.state;
    });
  };

  test("and has ended at once is not lost", () => {
    expect(states(seen(ready), seen(ended))).toEqual(["Ready", "Draining"]);
    expect(states(seen(down), seen(ended))).toEqual(["Down", "Down"]);
  });

  test("is not lost either when it is not ready while it serves the flows that it has", () => {
    expect(states(seen(ready), seen(ended), seen(ended))).toEqual(["Ready", "Draining", "Draining"]);
    expect(states(seen(ready), seen(draining), seen(ended))).toEqual(["Ready", "Draining", "Draining"]);
  });

  test("is lost with its node", () => {
    const silent = new Set(["n1"]);
    expect(states(seen(ready), seen(draining), seen(ended, silent))).toEqual(["Ready", "Draining", "Down"]);
  });
});

describe("a gateway that agents report", () => {
  const report = (of: string, state: AgentReport["state"], since: string): AgentReport => ({
    ...{ gateway: "nat-a", node: of, state, since },
  });
  const told = (
    gatewayReports: readonly AgentReport[],
    conditions: typeof ready = ready,
    before: Parameters<typeof gatewayStatuses>[1] = [],
  ) =>
    gatewayStatuses(
      {
        gateways: [{ ...common, name: "nat-a", ...conditions }],
        ...{ gatewayReasons: new Map([["nat-a", "ip_forward is 0"]]), gatewayReports },
        silentNodes: NONE,
      },
      before,
      NOW,
    )[0];

  test("is suspect, or down, as the worst report says, and of equals the earliest", () => {
    const suspect = [report("n8", "Suspect", NOW), report("n7", "Suspect", EARLIER)];
    expect(told(suspect)).toMatchObject({
      ...{ state: "Suspect", since: EARLIER, reason: "no answer to heartbeats", reportedBy: "n7" },
    });
    expect(told([...suspect, report("n9", "Down", NOW)])).toMatchObject({
      ...{ state: "Down", since: NOW, reason: "no answer through the tunnel", reportedBy: "n9" },
    });
  });

  test("stays as it is shown when another node says the same", () => {
    const shown = told([report("n8", "Suspect", NOW)]) ?? expect.fail();
    const others = [report("n7", "Suspect", EARLIER), report("n8", "Suspect", NOW)];
    expect(told(others, ready, [shown])).toEqual(shown);
    expect(told([report("n7", "Suspect", EARLIER)], ready, [shown])).toEqual({ ...shown, reportedBy: "n7" });
  });

  test("is what its pod is where that is not ready, or another one is meant", () => {
    const reports = [report("n7", "Down", EARLIER)];
    expect(told(reports, down)).toMatchObject({ state: "Down", since: NOW, reason: "ip_forward is 0" });
    expect(told(reports, down)).not.toHaveProperty("reportedBy");
    expect(told(reports, draining)?.state).toBe("Draining");
    expect(told([{ ...report("n7", "Down", EARLIER), gateway: "nat-b" }])?.state).toBe("Ready");
  });
});
