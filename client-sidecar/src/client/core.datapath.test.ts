import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FOU_PORT } from "@egress-nat/crds";
import { Client, Gateway, kernelThrough, prepareGatewayNetns } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Ask } from "../gateways/health.ts";
import type { EgressView } from "../gateways/view.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import type { EgressReference } from "../records/schema.ts";
import { agentMetrics } from "../testing/agent-metrics.ts";
import { egress } from "../testing/egress.ts";
import { locationsIn } from "../testing/locations.ts";
import { Adder } from "./adder.ts";
import type { Slices } from "./announcement.ts";
import { Leftovers } from "./leftovers.ts";
import { livesOf } from "./lives.ts";
import type { PodNetworks } from "./networks.ts";
import { ClientRegistry } from "./registry.ts";
import { Withdrawals } from "./withdrawals.ts";

const POD = { ipv4: "10.1.0.2", ipv6: "fd00:1::2" };
const GATEWAY = { ipv4: "10.1.0.4", ipv6: "fd00:1::4" };
const SERVER = { ipv4: "192.0.2.2", ipv6: "2001:db8::2" };
const CLUSTER_RANGES = ["10.1.0.0/24", "fd00:1::/64"];

const NAT = egress({ destinations: ["0.0.0.0/0", "::/0"] }, Object.values(GATEWAY));
const CANDIDATE = {
  network: "pods",
  containerId: "c1",
  ifname: "eth0",
  netns: "pod",
  pod: { namespace: "apps", name: "app", uid: "pod-uid" },
  addresses: Object.values(POD),
  annotations: { "egress.coil.cybozu.com/internet": "nat" },
};

const logger = createLogger({ name: "test", level: "silent" });
const folder = mkdtempSync(join(tmpdir(), "egress-nat-core-"));
const stop = new AbortController();

const kernelOf = (netns: string) =>
  kernelThrough((file, args, input) =>
    machine.exec(["nsenter", `--net=/run/netns/${netns}`, "--", file, ...args], { input }),
  );
const clientIn = (netns: string) => new Client({ kernel: kernelOf(netns), logger });

const state = new NodeState(locationsIn(folder), logger);
const registry = new ClientRegistry(state);
const gateway = new Gateway(
  { port: FOU_PORT, sourcePortAuto: false, destinations: NAT.spec.destinations, excluded: CLUSTER_RANGES },
  { kernel: kernelOf("gateway"), logger },
);
const view: EgressView = {
  egress: () => NAT,
  gateways: () => [gatewayOf({ addresses: Object.values(GATEWAY) })],
  knowsGateways: () => true,
  hasEgressIn: () => true,
  vanishedGateways: () => [],
  pulse: () => "alive",
  place: { nodeName: "node", zone: undefined },
  clusterRanges: CLUSTER_RANGES,
};

/** No slice in between: the gateway is told, and has applied it. */
const ask: Ask = async () => "applied";
const slices: Slices = {
  write: async (reference: EgressReference) => {
    const clients = registry.ofEgress(reference).map(({ pod, addresses }) => ({ id: pod.uid, addresses }));
    await gateway.sync(clients);
    return { uid: "slice", generation: 1 };
  },
};
const networks = {
  setUp: (netns, config) => clientIn(netns).setUp(config),
  probe: (netns, config, options) => clientIn(netns).probe(config, options),
  remove: (netns, isFree, uplink) => (isFree() ? clientIn(netns).remove(uplink) : Promise.resolve(true)),
  prepareGateway: (netns) => prepareGatewayNetns(kernelOf(netns)),
  exists: () => Promise.resolve(true),
} satisfies Partial<PodNetworks>;

const events: string[] = [];
const withdrawals = new Withdrawals({ state, registry, slices, view, ask, logger });
const leftovers = new Leftovers({ registry, networks, logger });
const lives = livesOf({ registry, networks, leftovers, withdrawals, logger });
const adder = new Adder({
  ...{ state, registry, lives, view, networks, slices, ask, logger },
  lookUpPod: () => expect.fail("no pod is looked up"),
  reapply: () => expect.fail("nothing has changed meanwhile"),
  recordEvent: (_, { message }) => events.push(message),
  metrics: agentMetrics(),
});

/** It answers with the address that it sees. */
const SERVER_PROGRAM = `
import ipaddress, socket
server = socket.create_server(("::", 9000), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    connection, peer = server.accept()
    address = ipaddress.ip_address(peer[0])
    connection.sendall(str(address.ipv4_mapped or address).encode())
    connection.close()`;

import { gateway as gatewayOf } from "../testing/gateway.ts";

const SOCKET = { ipv4: `TCP4:${SERVER.ipv4}`, ipv6: `TCP6:[${SERVER.ipv6}]` };

/** The address that the server sees, or nothing. */
const seenAs = (family: keyof typeof SERVER) =>
  machine.run(`ip netns exec pod socat -T 5 -u ${SOCKET[family]}:9000,connect-timeout=3 - 2>&1 || true`);

beforeAll(async () => {
  await machine.run(`
    for name in pod gateway router server; do ip netns add $name; ip -n $name link set lo up; done
    ip -n router link add br0 type bridge
    ip -n router link set br0 up
    ip netns exec router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    attach() { # namespace, IPv4, IPv6, routers of both
      ip link add eth0 netns $1 type veth peer name $1 netns router
      ip -n $1 link set eth0 up
      ip -n $1 address add $2 dev eth0
      ip -n $1 address add $3 dev eth0 nodad
      ip -n router link set $1 up
    }
    attach pod ${POD.ipv4}/24 ${POD.ipv6}/64
    attach gateway ${GATEWAY.ipv4}/24 ${GATEWAY.ipv6}/64
    attach server ${SERVER.ipv4}/24 ${SERVER.ipv6}/64
    ip -n router link set pod master br0
    ip -n router link set gateway master br0
    ip -n router address add 10.1.0.1/24 dev br0
    ip -n router address add fd00:1::1/64 dev br0 nodad
    ip -n router address add 192.0.2.1/24 dev server
    ip -n router address add 2001:db8::1/64 dev server nodad
    for name in pod gateway; do
      ip -n $name route add default via 10.1.0.1
      ip -n $name route add default via fd00:1::1
    done
    ip -n server route add default via 192.0.2.1
    ip -n server route add default via 2001:db8::1
    ip netns exec server python3 -c '${SERVER_PROGRAM}' >/dev/null 2>&1 </dev/null &
    echo $! >/run/core-server
    until ip netns exec server ss -ltn | grep -q :9000; do sleep 0.1; done`);
  await prepareGatewayNetns(kernelOf("gateway"));
  await gateway.init();
  void withdrawals.run(stop.signal);
  void leftovers.run(stop.signal);
});

afterAll(async () => {
  stop.abort();
  rmSync(folder, { recursive: true });
  await machine.run(`
    kill $(cat /run/core-server) || true
    for name in pod gateway router server; do ip netns del $name; done`);
});

test("a client is made, uses its gateway, and ends, with neither CNI nor socket nor Kubernetes", async () => {
  const before = await machine.run("ip -n pod rule; ip -n pod -6 rule; ip netns exec pod nft list ruleset");
  expect(await seenAs("ipv4")).toBe(POD.ipv4);
  await adder.add(CANDIDATE, stop.signal);
  expect(events).toEqual([]);
  expect(await seenAs("ipv4")).toBe(GATEWAY.ipv4);
  expect(await seenAs("ipv6")).toBe(GATEWAY.ipv6);

  const record = registry.get(recordId(CANDIDATE));
  if (record === undefined) throw new Error("the client has no record");
  // As the container runtime does it: DEL, and then the interface goes.
  await lives.happened("deleted", record);
  expect(await seenAs("ipv4")).not.toBe(GATEWAY.ipv4);
  await machine.run("ip -n pod link del eth0");
  await expect.poll(() => state.tombstones(), { timeout: 60_000 }).toEqual([]);
  await expect
    .poll(() => machine.run("ip -n pod rule; ip -n pod -6 rule; ip netns exec pod nft list ruleset"), {
      timeout: 60_000,
    })
    .toBe(before);
});
