import { expectStandardNames } from "@egress-nat/test/docs/metric-names";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { Metrics, tunnelTraffic } from "./metrics.ts";

const DEV = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     120       2    0    0    0     0          0         0      120       2    0    0    0     0       0          0
  eth0: 9000000    9000    0    0    0     0          0         0  8000000    8000    0    0    0     0       0          0
  fou4:123456789     700    0    0    0     0          0         0    65000     650    0    0    0     0       0          0
`;

const NOTHING = {
  clients: () => 0,
  slices: () => 0,
  drainingFlows: () => 0,
  drops: async () => new Map<string, number>(),
};

test("the traffic of the tunnel is told by family and direction", () => {
  expect(tunnelTraffic(DEV)).toEqual([
    { labels: { family: "ipv4", direction: "from_clients" }, bytes: 123456789, packets: 700 },
    { labels: { family: "ipv4", direction: "to_clients" }, bytes: 65000, packets: 650 },
  ]);
});

test("dropped packets are counters by reason, asked for at each scrape", async () => {
  const registry = new Registry();
  let packets = 3;
  new Metrics(registry).watch({ ...NOTHING, drops: async () => new Map([["no_client", packets]]) });
  const line = () => registry.getSingleMetricAsString("egress_nat_gateway_dropped_packets_total");
  expect(await line()).toContain('{reason="no_client"} 3');
  packets = 5;
  expect(await line()).toContain('{reason="no_client"} 5');
  expect(await line()).toContain("# TYPE egress_nat_gateway_dropped_packets_total counter");
});

test("the flows of a gateway that drains are a gauge, asked for at each scrape", async () => {
  const registry = new Registry();
  let flows = 0;
  new Metrics(registry).watch({ ...NOTHING, drainingFlows: () => flows });
  const line = () => registry.getSingleMetricAsString("egress_nat_gateway_draining_flows");
  expect(await line()).toMatch(/^egress_nat_gateway_draining_flows 0$/m);
  flows = 3;
  expect(await line()).toMatch(/^egress_nat_gateway_draining_flows 3$/m);
  flows = Number.NaN;
  expect(await line()).toMatch(/^egress_nat_gateway_draining_flows Nan$/m);
});

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  const registry = new Registry();
  new Metrics(registry).watch(NOTHING);
  await expectStandardNames(registry);
});
