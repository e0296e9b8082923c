import { afterAll, beforeAll, expect, test } from "vitest";
import { Client } from "../client/client.ts";
import { FAMILIES } from "../family.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import {
  ADDRESSES,
  addressOf,
  advertise,
  ask,
  buildTopology,
  destroyTopology,
  inside,
  kernelOf,
  lie,
  type Namespace,
} from "../testing/topology.ts";
import { Gateway } from "./gateway.ts";
import { prepareGatewayNetns } from "./netns.ts";

const SOON = { timeout: 20_000 };
const own = Object.values(ADDRESSES.gateway ?? {});
const gateway = new Gateway(gatewayConfig({ addresses: own }), {
  kernel: kernelOf("gateway"),
  logger: silent,
});

/** What a gateway's namespace believes of its network: routes, addresses, and who its neighbours are. */
async function beliefs(): Promise<string> {
  const output = await inside(
    "gateway",
    `for a in 10.1.0.1 fd00:1::1; do ping -q -c 1 -W 1 $a >/dev/null || echo no answer from $a; done
    ip route; ip -6 route; ip -oneline address | grep -v 'scope link'
    ip route get 192.0.2.2; ip -6 route get 2001:db8::2
    for a in 10.1.0.1 fd00:1::1; do ip neigh show $a; done`,
  );
  // Neighbours are confirmed now and then, lifetimes pass.
  return output.replaceAll(
    / (REACHABLE|STALE|DELAY|PROBE|router)\b| expires \d+sec| (valid|preferred)_lft \d+sec/g,
    "",
  );
}

/** Takes back what a namespace has been made to believe. */
async function forget(namespace: Namespace): Promise<void> {
  await inside(
    namespace,
    `ip -6 route flush proto ra; ip -6 address flush dynamic
    for v in 4 6; do ip -$v neigh flush all; ip -$v route flush cache; done`,
  );
}

/** A router speaks once its own address is ready. */
async function learnRoute(): Promise<void> {
  const learned = async () => {
    await advertise("fd00:1::");
    return inside("gateway", "ip -6 route show default");
  };
  await expect.poll(learned, SOON).toContain("proto ra");
  await expect.poll(() => inside("gateway", "ip -6 address show tentative"), SOON).toBe("");
}

beforeAll(buildTopology);
afterAll(destroyTopology);

test("an unprepared namespace believes whoever says to be a router", async () => {
  await inside("gateway", "ip -6 route del default");
  await learnRoute();
  // Redirects lead to neighbours that are known.
  await inside("stranger", `ping -q -c 1 -W 5 ${addressOf("gateway", "ipv4")}`);
  try {
    const before = await beliefs();
    await lie("stranger", "gateway");
    await expect.poll(beliefs, SOON).not.toBe(before);
  } finally {
    await forget("gateway");
  }
});

test("a prepared one keeps the route that its router told first, for good, and believes nobody any more", async () => {
  await learnRoute();
  const told = /via (\S+)/.exec(await inside("gateway", "ip -6 route show default"))?.[1];
  await prepareGatewayNetns(kernelOf("gateway"));
  expect(await inside("gateway", "ip -6 route show default")).toMatch(
    new RegExp(`^default via ${told} dev eth0 proto static metric \\d+ pref medium\\s*$`),
  );
  expect(await inside("gateway", "ip -6 address show dynamic")).toBe("");
  const before = await beliefs();
  expect(before).toContain("192.0.2.2 via 10.1.0.1 ");
  await lie("stranger", "gateway");
  // Answered after all that was sent before.
  await inside("stranger", `ping -q -c 1 -W 5 ${addressOf("gateway", "ipv4")}`);
  expect(await beliefs()).toBe(before);
});

test("the gateway uses the addresses that it was told, and no other that its interface has", async () => {
  await inside(
    "gateway",
    "ip address add 10.1.0.99/24 dev eth0; ip -6 address add fd00:1::99/64 dev eth0 nodad",
  );
  await forget("client");
  await gateway.init();
  await gateway.sync([gatewayClient("client")]);
  await new Client({ kernel: kernelOf("client"), logger: silent }).apply(clientConfig(egress()));
  for (const family of FAMILIES) {
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
  }
});

test("without one of the addresses that it was told it says so", async () => {
  const elsewhere = new Gateway(gatewayConfig({ addresses: ["10.1.0.77"] }), {
    kernel: kernelOf("gateway"),
    logger: silent,
  });
  await expect(elsewhere.check()).rejects.toMatchObject({
    code: "uplink-missing",
    message: expect.stringContaining("none of the addresses 10.1.0.77"),
  });
});
