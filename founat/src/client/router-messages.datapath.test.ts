import { FAMILIES } from "@egress-nat/addresses";
import { beforeAll, describe, expect, test, vi } from "vitest";
import type { Kernel } from "../kernel/kernel.ts";
import { silent } from "../testing/configs.ts";
import { everywhere, useClientAndGateway } from "../testing/data-path.ts";
import { outerPacket, redirect4, redirect6, routerAdvertisement } from "../testing/router-messages.ts";
import {
  addressOf,
  ask,
  forge,
  forgetLeaks,
  inside,
  kernelOf,
  leaks,
  listen,
  type Namespace,
} from "../testing/topology.ts";
import { Client } from "./client.ts";

const { client } = useClientAndGateway();
/** Both hear what the neighbour says; the stranger is no client, and believes it. */
const HEARERS = ["client", "stranger"] as const;
const WAIT = { timeout: 20_000 };

const PREFIX = "2001:db8::/64";
const ROUTE = "2001:db8:5::/48";
const LIES = routerAdvertisement(1800, [
  { prefix: PREFIX, onLink: true },
  { prefix: ROUTE, onLink: false },
]);

beforeAll(async () => {
  for (const hearer of HEARERS) {
    await inside(hearer, "sysctl -qw net.ipv6.conf.eth0.accept_ra_rt_info_max_plen=128");
  }
  // Kernels take back what they have of a router whose answers, seconds later, say that it is none.
  await inside("neighbour", "sysctl -qw net.ipv6.conf.eth0.forwarding=1");
});

async function linkLocal(namespace: Namespace, device: string): Promise<string> {
  const output = await inside(namespace, `ip -6 -o address show dev ${device} scope link`);
  return /fe80[^/ ]*/.exec(output)?.[0] ?? "";
}

/** The neighbour sends a message to both, from an address that it may not have. */
function say(source: string, message: (hearer: Namespace) => string, family: "ipv4" | "ipv6" = "ipv6") {
  const packets = HEARERS.map((hearer) => {
    const to = addressOf(hearer, family);
    return { how: "bare", to, source, destination: to, payload: "", icmp: message(hearer) } as const;
  });
  return forge("neighbour", packets);
}

const routesOf = (namespace: Namespace) => inside(namespace, "ip -6 route show; ip -6 address show dev eth0");

/** As routers do, the neighbour says it again and again. */
async function lieUntilBelievedBy(namespace: Namespace) {
  const neighbour = await linkLocal("neighbour", "eth0");
  await vi.waitFor(async () => {
    await say(neighbour, () => LIES);
    const routes = await routesOf(namespace);
    for (const lie of [PREFIX, ROUTE, "proto ra"]) expect(routes).toContain(lie);
  }, WAIT);
}

async function expectNothingBelieved() {
  expect(await routesOf("client")).not.toMatch(/2001:db8:|proto ra/);
  await forgetLeaks();
  expect(await ask("client", "tcp", addressOf("internet", "ipv6"))).toBe(addressOf("gateway", "ipv6"));
  expect(await ask("client", "udp", addressOf("internet", "ipv6"), { device: "eth0" })).toBe("EPERM");
  expect(await leaks()).toBe(0);
}

describe("a neighbour that says it is a router", () => {
  test("is not believed: neither prefix nor route nor way out", async () => {
    await client.apply(everywhere);
    await lieUntilBelievedBy("stranger");
    await expectNothingBelieved();
    expect(await client.apply(everywhere)).toEqual({ changed: false });
  });

  test("and was believed before the pod became a client, is not any more", async () => {
    await client.remove();
    await inside("client", "sysctl -qw net.ipv6.conf.eth0.accept_ra=1");
    await lieUntilBelievedBy("client");
    await client.apply(everywhere);
    await expectNothingBelieved();
    expect(await client.apply(everywhere)).toEqual({ changed: false });
  });

  test("and what it said may run out while it is being taken away", async () => {
    await client.remove();
    await inside("client", "sysctl -qw net.ipv6.conf.eth0.accept_ra=1");
    await lieUntilBelievedBy("client");
    const kernel = kernelOf("client");
    const late: Kernel = {
      ...kernel,
      run: async (steps) => {
        await inside("client", "ip -6 route flush proto ra");
        return kernel.run(steps);
      },
    };
    await new Client({ kernel: late, logger: silent }).apply(everywhere);
    await expectNothingBelieved();
  });
});

describe("where the way out comes from a router's advertisement", () => {
  const defaultRoutes = async () =>
    (await inside("client", "ip -6 route show default")).trim().split("\n").filter(Boolean);
  let router: string;

  beforeAll(async () => {
    router = await linkLocal("router", "br0");
    await client.remove();
    await inside(
      "client",
      "ip -6 route del default; sysctl -qw net.ipv6.conf.eth0.accept_ra=1 net.ipv6.conf.eth0.accept_redirects=1",
    );
    await say(router, () => routerAdvertisement(1800, []));
    await vi.waitFor(async () => expect((await defaultRoutes()).join()).toContain("proto ra"), WAIT);
    await client.apply(everywhere);
  });

  test("it stays for good, and no other one takes its place", async () => {
    expect(await defaultRoutes()).toEqual([
      expect.stringMatching(`^default via ${router} dev eth0 proto static`),
    ]);
    await inside("stranger", "ip -6 route flush proto ra");
    await say(router, () => routerAdvertisement(0, []));
    await lieUntilBelievedBy("stranger");
    expect(await defaultRoutes()).toHaveLength(1);
    await expectNothingBelieved();
    expect(await client.apply(everywhere)).toEqual({ changed: false });
  });
});

describe.each(FAMILIES)("a redirect of the outer packets (%s)", (family) => {
  const service = addressOf("service", family);
  const version = family === "ipv4" ? "" : "-6";
  const wayOf = (namespace: Namespace) => inside(namespace, `ip ${version} route get ${service}`);

  test("is not believed", async () => {
    await client.apply(everywhere);
    const router = family === "ipv4" ? "10.1.0.1" : await linkLocal("router", "br0");
    const neighbour =
      family === "ipv4" ? addressOf("neighbour", "ipv4") : await linkLocal("neighbour", "eth0");
    await inside("stranger", "sysctl -qw net.ipv6.conf.eth0.accept_ra=0; ip -6 route flush proto ra");
    await listen("stranger", 5555, { address: family === "ipv4" ? "0.0.0.0" : "::" });
    for (const hearer of HEARERS) {
      await inside(hearer, `ip ${version} route replace default via ${router} dev eth0`);
      expect(await wayOf(hearer)).toContain(`via ${router}`);
    }
    await say(
      router,
      (hearer) =>
        family === "ipv4"
          ? redirect4(neighbour, outerPacket(addressOf(hearer, family), service))
          : redirect6(neighbour, service),
      family,
    );
    await vi.waitFor(async () => expect(await wayOf("stranger")).toContain(`via ${neighbour}`), WAIT);
    expect(await wayOf("client")).toContain(`via ${router}`);
  });
});

describe("a neighbour that has taken the router's place on the link, by forged ARP and neighbour advertisements", () => {
  beforeAll(async () => {
    await client.apply(everywhere);
    const mac = /link.ether (\S+)/.exec(await inside("neighbour", "ip link show dev eth0"))?.[1];
    const router = await linkLocal("router", "br0");
    await inside(
      "client",
      `for address in 10.1.0.1 fd00:1::1 ${router}; do ip neigh replace $address lladdr ${mac} dev eth0 nud permanent; done`,
    );
    await inside(
      "neighbour",
      `nft 'add table netdev seen
       add chain netdev seen c { type filter hook ingress device eth0 priority 0; }
       add counter netdev seen bare
       add rule netdev seen c udp dport 5555 accept
       add rule netdev seen c ip saddr 10.1.0.2 meta l4proto { tcp, udp } counter name bare
       add rule netdev seen c ip6 saddr fd00:1::2 meta l4proto { tcp, udp } counter name bare'`,
    );
  });

  test.each(FAMILIES)("gets nothing that left bare (%s)", async (family) => {
    const internet = addressOf("internet", family);
    const bare = async () =>
      Number(/packets (\d+)/.exec(await inside("neighbour", "nft list counter netdev seen bare"))?.[1]);
    await client.remove();
    await ask("client", "udp", internet, { timeout: 1 });
    const before = await bare();
    expect(before).toBeGreaterThan(0);
    await client.apply(everywhere);
    for (const options of [{}, { device: "eth0" }]) {
      await ask("client", "udp", internet, { ...options, timeout: 1 });
    }
    expect(await bare()).toBe(before);
  });
});
