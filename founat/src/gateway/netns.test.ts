import { expect, test } from "vitest";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";
import { prepareGatewayNetns } from "./netns.ts";

// As `ip -N -json -details` prints them.
const GIVEN = { family: "inet6", scope: "0", local: "fd00:1::4", prefixlen: 64 };
const ADVERTISED = { ...GIVEN, local: "2001:db8:bad::4", dynamic: true };
const GIVEN_ROUTE = {
  ...{ type: "1", dst: "default", gateway: "fd00:1::1", dev: "eth0" },
  ...{ protocol: "3", metric: 1024, pref: "medium" },
};
const ADVERTISED_ROUTE = { ...GIVEN_ROUTE, gateway: "fe80::1", protocol: "9" };
const LATER_ROUTE = { ...ADVERTISED_ROUTE, gateway: "fe80::bad" };

interface Network {
  readonly addresses: readonly object[];
  readonly routes: readonly object[];
  /** Of its link, in addition. */
  readonly link?: object;
}

/**
 * The steps that prepare a namespace in which every sysctl of IPv6 has the value 1.
 *
 * @param later what it holds once routers are not listened to any more
 */
async function preparation(network: Network, later = network): Promise<readonly Step[]> {
  const taken: Step[] = [];
  const networks = [network, later];
  const kernel: Partial<Kernel> = {
    run: async (steps) => {
      taken.push(...steps);
      return [];
    },
    read: async () => {
      const { addresses, routes, link } = networks.shift() ?? later;
      const links = [{ ifname: "eth0", mtu: 1500, group: "0", addr_info: addresses, ...link }];
      return [`${JSON.stringify(links)}\n${JSON.stringify(routes)}\n`];
    },
    readSysctls: async (paths) =>
      new Map(paths.filter((path) => path.startsWith("net/ipv6/conf/eth0")).map((path) => [path, "1"])),
  };
  await prepareGatewayNetns(kernel as Kernel);
  return taken;
}

const DEAF = { sysctls: { "net/ipv6/conf/eth0/accept_redirects": "0", "net/ipv6/conf/eth0/accept_ra": "0" } };

function ipLines(...lines: readonly string[]): Step {
  return { file: "ip", args: ["-6", "-batch", "-"], input: `${lines.join("\n")}\n` };
}

test("routers are not listened to any more before their first route and addresses become static, where nothing else is", async () => {
  const routes = [ADVERTISED_ROUTE, LATER_ROUTE];
  expect(await preparation({ addresses: [ADVERTISED], routes })).toEqual([
    DEAF,
    ipLines(
      "route replace ::/0 via fe80::1 dev eth0 metric 1024 proto static",
      "route del ::/0 via fe80::bad dev eth0 metric 1024 proto 9",
      "address change 2001:db8:bad::4/64 dev eth0 valid_lft forever preferred_lft forever",
    ),
  ]);
});

test("where a pod has an IPv6 address and no default route yet, routers may still tell one", async () => {
  const patient = { ...DEAF.sysctls, "net/ipv6/conf/eth0/accept_ra": "2" };
  const addresses = [GIVEN, ADVERTISED];
  const later = { addresses, routes: [ADVERTISED_ROUTE] };
  expect(await preparation({ addresses, routes: [] }, later)).toEqual([{ sysctls: patient }]);
});

test("but not where only routers have told an address", async () => {
  const addresses = [{ family: "inet", scope: "0", local: "10.1.0.4", prefixlen: 24 }, ADVERTISED];
  expect(await preparation({ addresses, routes: [] })).toEqual([
    DEAF,
    ipLines("address del 2001:db8:bad::4/64 dev eth0"),
  ]);
});

test("a route that the runtime made stays as it is", async () => {
  expect(await preparation({ addresses: [GIVEN], routes: [GIVEN_ROUTE] })).toEqual([DEAF]);
});

test("beside what the runtime made nothing stays of what routers have told, by the time they are not listened to", async () => {
  const before = { addresses: [GIVEN], routes: [GIVEN_ROUTE] };
  const prefix = { ...GIVEN_ROUTE, dst: "2001:db8:bad::/64", gateway: undefined, protocol: "2", metric: 256 };
  const later = { addresses: [GIVEN, ADVERTISED], routes: [ADVERTISED_ROUTE, GIVEN_ROUTE, prefix] };
  expect(await preparation(before, later)).toEqual([
    DEAF,
    ipLines(
      "route del ::/0 via fe80::1 dev eth0 metric 1024 proto 9",
      "route del 2001:db8:bad::/64 dev eth0 metric 256 proto 2",
      "address del 2001:db8:bad::4/64 dev eth0",
    ),
  ]);
});

test("its hardware address is set anew where the link has one, because the kernel tells neighbours then", async () => {
  const network = { addresses: [GIVEN], routes: [GIVEN_ROUTE] };
  const ether = { link_type: "[1]", address: "02:00:00:00:00:04" };
  const announcement = {
    ...{ file: "sh", args: ["-c", expect.any(String), "sh", "eth0", "02:00:00:00:00:04"] },
    mayFail: true,
  };
  expect(await preparation({ ...network, link: ether })).toEqual([DEAF, announcement]);
  expect(await preparation({ ...network, link: { link_type: "[65534]" } })).toEqual([DEAF]);
});
