import { FAMILIES } from "@egress-nat/addresses";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Client } from "../client/client.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import { redirect6, routerAdvertisement } from "../testing/router-messages.ts";
import {
  ADDRESSES,
  addressOf,
  advertise,
  ask,
  buildTopology,
  destroyTopology,
  forge,
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

/** What a namespace believes of its network: routes, addresses, and who its neighbours are. */
async function beliefs(namespace: Namespace): Promise<string> {
  const output = await inside(
    namespace,
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

async function linkLocal(namespace: Namespace, device: string): Promise<string> {
  const output = await inside(namespace, `ip -6 -oneline address show dev ${device} scope link`);
  return /fe80[^/ ]*/.exec(output)?.[0] ?? "";
}

/** Those of the stranger's lies that a namespace believes. */
async function believedLies(namespace: Namespace): Promise<string[]> {
  const stranger = await linkLocal("stranger", "eth0");
  const mac = /link.ether (\S+)/.exec(await inside("stranger", "ip link show dev eth0"))?.[1];
  const signs = {
    address: /inet6 2001:db8:bad:/,
    prefix: /^2001:db8:bad::\/64 dev eth0 proto kernel/m,
    route: new RegExp(`^2001:db8::/32 via ${stranger} dev eth0 proto ra`, "m"),
    "default route": new RegExp(`^default via ${stranger} dev eth0 proto ra`, "m"),
    "redirect of IPv4": /^192\.0\.2\.2 via 10\.1\.0\.5 /m,
    "redirect of IPv6": new RegExp(`^2001:db8::2 via ${stranger} `, "m"),
    ARP: new RegExp(`^10\\.1\\.0\\.1 dev eth0 lladdr ${mac} `, "m"),
    NA: new RegExp(`^fd00:1::1 dev eth0 lladdr ${mac} `, "m"),
  };
  const output = await inside(
    namespace,
    "ip -6 -oneline address; ip -6 route; ip route get 192.0.2.2; ip -6 route show cache; ip neigh; ip -6 neigh",
  );
  return Object.entries(signs).flatMap(([lie, sign]) => (sign.test(output) ? [lie] : []));
}

/** The stranger sends an ICMP message of routers. @param source whose link-local address it has */
async function speak(namespace: Namespace, source: string, icmp: string): Promise<void> {
  const to = addressOf(namespace, "ipv6");
  await forge("stranger", [{ how: "bare", to, source, destination: to, payload: "", icmp }]);
}

async function tellAllLies(namespace: Namespace): Promise<void> {
  await lie("stranger", namespace);
  // One that quotes a packet counts only where a socket has sent that.
  const redirect = redirect6(await linkLocal("stranger", "eth0"), "2001:db8::2");
  await speak(namespace, await linkLocal("router", "br0"), redirect);
}

/** The router says that it is no longer one. */
async function resign(namespace: Namespace): Promise<void> {
  await speak(namespace, await linkLocal("router", "br0"), routerAdvertisement(0, []));
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

beforeAll(async () => {
  await buildTopology();
  // The kernel takes back the default route by way of a neighbour whose answers, seconds later, say that it is no router.
  await inside("stranger", "sysctl -qw net.ipv6.conf.eth0.forwarding=1");
  for (const namespace of ["gateway", "neighbour"] as const) {
    await inside(namespace, "sysctl -qw net.ipv6.conf.eth0.accept_ra_rt_info_max_plen=128");
  }
});
afterAll(destroyTopology);

test("beside what the runtime made nothing stays of what a stranger has told before", async () => {
  const before = await beliefs("neighbour");
  const lies = routerAdvertisement(1800, [
    { prefix: "2001:db8:bad::/64", onLink: true },
    { prefix: "2001:db8::/32", onLink: false },
  ]);
  const believed = async () => {
    await speak("neighbour", await linkLocal("stranger", "eth0"), lies);
    return believedLies("neighbour");
  };
  await expect.poll(believed, SOON).toEqual(["address", "prefix", "route", "default route"]);
  await prepareGatewayNetns(kernelOf("neighbour"));
  expect(await beliefs("neighbour")).toBe(before);
  expect(await believed()).toEqual([]);
});

test("an unprepared namespace believes whoever says to be a router, whatever he says", async () => {
  await inside("gateway", "ip -6 route del default");
  await learnRoute();
  // Redirects lead to neighbours that are known.
  await inside("stranger", `ping -q -c 1 -W 5 ${addressOf("gateway", "ipv4")}`);
  expect(await beliefs("gateway")).not.toContain("no answer");
  expect(await believedLies("gateway")).toEqual([]);
  try {
    const believed = async () => {
      await tellAllLies("gateway");
      return believedLies("gateway");
    };
    await expect
      .poll(believed, SOON)
      .toEqual([
        "address",
        "prefix",
        "route",
        "default route",
        "redirect of IPv4",
        "redirect of IPv6",
        "ARP",
        "NA",
      ]);
    await resign("gateway");
    const router = await linkLocal("router", "br0");
    await expect.poll(() => inside("gateway", "ip -6 route show default"), SOON).not.toContain(router);
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
  const before = await beliefs("gateway");
  expect(before).toContain("192.0.2.2 via 10.1.0.1 ");
  await tellAllLies("gateway");
  await resign("gateway");
  // Answered after all that was sent before.
  await inside("stranger", `ping -q -c 1 -W 5 ${addressOf("gateway", "ipv4")}`);
  expect(await beliefs("gateway")).toBe(before);
  expect(await believedLies("gateway")).toEqual([]);
});

test("neighbours hear of it that its addresses were somebody else's, before they send there", async () => {
  const [own4, own6] = [addressOf("gateway", "ipv4"), addressOf("gateway", "ipv6")];
  await inside(
    "client",
    `for a in ${own4} ${own6}; do ip neigh replace $a lladdr 02:00:00:00:00:99 dev eth0 nud stale; done`,
  );
  await prepareGatewayNetns(kernelOf("gateway"));
  const mac = /link.ether (\S+)/.exec(await inside("gateway", "ip link show dev eth0"))?.[1];
  for (const own of [own4, own6]) {
    await expect.poll(() => inside("client", `ip neigh show ${own}`), SOON).toContain(` lladdr ${mac} `);
  }
});

test("what whoever attached it has said of neighbours for good stays", async () => {
  const neighbours = ["10.1.0.77", "fd00:1::77"];
  const show = () => inside("neighbour", "ip neigh show nud permanent");
  for (const each of neighbours) {
    await inside("neighbour", `ip neigh replace ${each} lladdr 02:00:00:00:00:77 dev eth0 nud permanent`);
  }
  const before = await show();
  expect(before.trim().split("\n")).toHaveLength(neighbours.length);
  await prepareGatewayNetns(kernelOf("neighbour"));
  expect(await show()).toBe(before);
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
