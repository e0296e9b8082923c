import { EgressClientSlice } from "@egress-nat/crds";
import type { Clock } from "@egress-nat/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { WatchedGateway } from "../gateways/heartbeats.ts";
import type { Pulse } from "../gateways/pulse.ts";
import { egressKey } from "../records/egress-key.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { GatewayReporter } from "./reporter.ts";

const NAT = { namespace: "internet", name: "nat" };
const gateway = (name: string): WatchedGateway => ({ egress: NAT, name, addresses: [`of-${name}`] });
const SINCE = "2026-01-02T03:04:05Z";
const SLICE = EgressClientSlice.parse({
  metadata: {
    ...NAT,
    name: "nat.node-1",
    uid: "s",
    generation: 3,
    labels: { "coil.cybozu.com/egress": "nat" },
  },
  ...{ nodeName: "node-1", clients: [] },
  suspects: [{ gateway: "one", state: "Suspect", since: SINCE }],
});

let gateways: WatchedGateway[];
let pulses: Map<string, Pulse>;
let changes: string[];
/** Milliseconds: looks follow each other at once, each a second later. */
let now: number;
let reporter: GatewayReporter;
let ended: AbortController;

beforeEach(() => {
  gateways = [gateway("one"), gateway("other")];
  pulses = new Map();
  [changes, now, ended] = [[], 0, new AbortController()];
  const told = gateways.map(({ name, addresses }) => ({ name, addresses, state: "Ready" }));
  const clock: Clock = {
    now: () => now,
    after: (_, callback) => {
      now += 1000;
      setImmediate(callback);
      return () => undefined;
    },
  };
  reporter = new GatewayReporter({
    gateways: () => gateways,
    pulse: (address) => pulses.get(address) ?? pulses.get(address.replace("of-", "")) ?? "alive",
    registry: { ofEgress: () => [clientRecord()] },
    view: { egress: () => egress({}, undefined, { gateways: told, clients: 1 }) },
    onChange: (reference) => {
      const reports = reporter.reports(reference).map(({ gateway: name, state }) => `${name} ${state}`);
      changes.push([egressKey(reference), ...reports].join(": "));
    },
    clock,
  });
});

afterEach(() => ended.abort());

test("a change is told when the slice has to say something else, and only then", async () => {
  pulses.set("other", "suspect");
  void reporter.run(ended.signal);
  await expect.poll(() => changes).toEqual(["internet/nat: other Suspect"]);
  await expect.poll(() => now).toBeGreaterThan(20_000);
  pulses.clear();
  await expect.poll(() => changes).toEqual(["internet/nat: other Suspect", "internet/nat"]);
});

test("what the agent before has reported stands while the gateway does not answer, then it is taken back", async () => {
  reporter.load([SLICE]);
  expect(reporter.reports(NAT)).toEqual(SLICE.suspects);
  pulses.set("one", "suspect");
  void reporter.run(ended.signal);
  await expect.poll(() => now).toBeGreaterThan(20_000);
  expect(changes).toEqual([]);
  expect(reporter.reports(NAT)[0]?.since).toBe(SINCE);
  pulses.clear();
  await expect.poll(() => changes).toEqual(["internet/nat"]);
});

describe("a gateway of two families", () => {
  beforeEach(() => {
    gateways = ["one", "other"].map((name) => ({
      ...gateway(name),
      addresses: [`192.0.2.1-${name}`, `2001:db8::1-${name}`],
    }));
  });

  test("whose tunnel is lost in one only is suspect", async () => {
    pulses.set("2001:db8::1-one", "suspect");
    void reporter.run(ended.signal);
    await expect.poll(() => changes).toEqual(["internet/nat: one Suspect"]);
  });

  test("that is dead in both is down", async () => {
    for (const family of ["192.0.2.1", "2001:db8::1"]) pulses.set(`${family}-one`, "dead");
    void reporter.run(ended.signal);
    await expect.poll(() => changes).toEqual(["internet/nat: one Down"]);
  });
});

test("a gateway that is gone is reported no longer", async () => {
  reporter.load([SLICE]);
  gateways = [];
  void reporter.run(ended.signal);
  await expect.poll(() => changes).toEqual(["internet/nat"]);
});
