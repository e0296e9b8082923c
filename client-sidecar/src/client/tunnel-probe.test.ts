import { createLogger } from "@egress-nat/program";
import { expect, test } from "vitest";
import type { EgressFacts } from "../gateways/view.ts";
import type { ClientRecord } from "../records/schema.ts";
import { agentMetrics } from "../testing/agent-metrics.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import type { PodEvent } from "./pod.ts";
import { probeTunnels } from "./tunnel-probe.ts";

const RECORD = {
  ...{ containerId: "c1", netns: "/run/netns/c1", ifname: "eth0" },
  ...{ addresses: ["10.244.1.7", "fd00:244:1::7"], addedAt: "2026-01-01T00:00:00Z", egresses: [] },
  pod: { namespace: "default", name: "web-0", uid: "pod-1" },
} satisfies ClientRecord;

const CONFIG = { uplink: "eth0", egresses: [], clusterRanges: [] };

function egress(name: string, clientStartup: "WaitForGateway" | "Immediate"): EgressFacts {
  return { metadata: { namespace: "internet", name }, spec: { clientStartup } } as EgressFacts;
}

function effects() {
  const networks = new FakeNetworks();
  const events: PodEvent[] = [];
  const metrics = agentMetrics();
  const logger = createLogger({ name: "test", level: "silent" });
  const counted = async () =>
    (await metrics.tunnelProbes.get()).values.map(({ labels, value }) => [labels.result, value]);
  return {
    ...{ networks, events, metrics, logger, counted },
    recordEvent: (_: unknown, event: PodEvent) => void events.push(event),
  };
}

test("the tunnels of all Egresses that a client waits for are probed, in the client's families", async () => {
  const given = effects();
  const egresses = [egress("a", "WaitForGateway"), egress("b", "Immediate")];
  await probeTunnels(given, RECORD, CONFIG, egresses);
  const addresses = { ipv4: "10.244.1.7", ipv6: "fd00:244:1::7" };
  expect(given.networks.probes).toEqual([{ addresses, egresses: ["internet/a"], timeoutMs: 2000 }]);
  expect(given.events).toEqual([]);
  expect(await given.counted()).toEqual([["answered", 1]]);
});

test("who waits for nobody is not held up", async () => {
  const given = effects();
  await probeTunnels(given, RECORD, CONFIG, [egress("b", "Immediate")]);
  expect(given.networks.probes).toEqual([]);
});

test("a tunnel that does not answer is an event, and fails nothing", async () => {
  const given = effects();
  given.networks.silent = [{ egress: "internet/a", family: "ipv6", reason: "no answer within 2 s" }];
  await probeTunnels(given, RECORD, CONFIG, [egress("a", "WaitForGateway")]);
  expect(given.events).toEqual([
    {
      type: "Warning",
      reason: "TunnelNotAnswering",
      message: expect.stringContaining(
        "the IPv6 tunnel to the gateways of Egress internet/a: no answer within 2 s; if connections through it fail",
      ),
    },
  ]);
  expect(await given.counted()).toEqual([["silent", 1]]);
});

test("a probe that cannot be sent fails nothing either", async () => {
  const given = effects();
  given.networks.probe = () => Promise.reject(new Error("no namespace"));
  await probeTunnels(given, RECORD, CONFIG, [egress("a", "WaitForGateway")]);
  expect(await given.counted()).toEqual([["error", 1]]);
});
