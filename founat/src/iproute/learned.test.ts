import { describe, expect, test } from "vitest";
import { givenAddresses, isLearned, settledLines } from "./learned.ts";
import type { LinkState, NetworkState, RouteState } from "./state.ts";

const KERNEL = 2;
const STATIC = 4;
const ADVERTISEMENT = 9;

type Address = LinkState["addresses"][number];

function address(changes: Partial<Address>): Address {
  return { family: "ipv6", address: "fd00:1::2", prefixLength: 64, lasting: true, ...changes };
}

function link(...addresses: readonly Address[]): LinkState {
  return { name: "eth0", up: true, mtu: 1500, group: 0, hasIpv4Address: true, addresses };
}

function route(changes: Partial<RouteState>): RouteState {
  const common = { family: "ipv6", table: 254, type: "unicast", device: "eth0", metric: 1024 } as const;
  return { ...common, destination: "::/0", protocol: ADVERTISEMENT, ...changes };
}

function state(uplink: LinkState, ...routes: readonly RouteState[]): NetworkState {
  return { links: [uplink], routes, rules: [], fouPorts: [] };
}

const own = address({});
const slaac = address({ address: "2001:db8::2", lasting: false });
const leased = address({ family: "ipv4", address: "10.1.0.2", prefixLength: 24, lasting: false });

describe("a route", () => {
  const network = state(link(own, slaac));

  test.each([
    ["of an advertisement", route({ destination: "2001:db8:5::/48" }), true],
    ["of a redirect", route({ destination: "2001:db8:5::9/128", protocol: 1 }), true],
    [
      "to an advertised prefix, whatever its lifetime",
      { destination: "2001:db8::/64", protocol: KERNEL },
      true,
    ],
    [
      "to the network of an address without a lifetime",
      { destination: "fd00:1::/64", protocol: KERNEL },
      false,
    ],
    ["to an advertised prefix around that network", { destination: "fd00::/16", protocol: KERNEL }, true],
    ["that somebody made", { destination: "2001:db8:6::/48", protocol: STATIC }, false],
    ["to the link itself", { destination: "fe80::/64", protocol: KERNEL }, false],
    ["of IPv4", { family: "ipv4", destination: "10.1.0.0/24", protocol: KERNEL }, false],
  ] as const)("%s", (_, changes, learned) => {
    expect(isLearned(route(changes), network)).toBe(learned);
  });
});

test("addresses with a lifetime count only where there are no others", () => {
  expect(givenAddresses(link(slaac, own))).toEqual([own]);
  expect(givenAddresses(link(slaac))).toEqual([slaac]);
});

test("an IPv4 address is given, whatever its lifetime, which is that of a lease (DHCP)", () => {
  expect(givenAddresses(link(leased, slaac, own))).toEqual([leased, own]);
  expect(givenAddresses(link(leased, slaac))).toEqual([leased]);
});

describe("without routers", () => {
  const advertised = route({ via: "fe80::1" });
  const prefix = route({ destination: "2001:db8::/64", protocol: KERNEL, metric: 256 });
  const made = route({ via: "fd00:1::1", protocol: 3 });

  test("nothing of advertisements stays beside a way out and an address of the runtime's making", () => {
    const uplink = link(slaac, own);
    expect(settledLines([uplink], state(uplink, made, advertised, prefix))).toEqual([
      "route del ::/0 via fe80::1 dev eth0 metric 1024 proto 9",
      "route del 2001:db8::/64 dev eth0 metric 256 proto 2",
      "address del 2001:db8::2/64 dev eth0",
    ]);
  });

  test("the first router's default route keeps the size of packets that it carries", () => {
    const uplink = link(own);
    expect(settledLines([uplink], state(uplink, { ...advertised, mtu: 1400 }))).toContain(
      "route replace ::/0 via fe80::1 dev eth0 metric 1024 mtu 1400 proto static",
    );
  });

  test("the first router's default route stays for good where there is no other", () => {
    const uplink = link(own);
    const other = route({ via: "fe80::2" });
    expect(settledLines([uplink], state(uplink, advertised, other))).toEqual([
      "route replace ::/0 via fe80::1 dev eth0 metric 1024 proto static",
      "route del ::/0 via fe80::2 dev eth0 metric 1024 proto 9",
    ]);
  });

  test("a way out by another link is one", () => {
    const uplink = { ...link(own), name: "net1" };
    const elsewhere = route({ via: "fe80::1", device: "net1" });
    expect(settledLines([link(own), uplink], state(uplink, made, elsewhere))).toEqual([
      "route del ::/0 via fe80::1 dev net1 metric 1024 proto 9",
    ]);
  });

  test("an IPv4 address with a lifetime stays as it is", () => {
    const uplink = link(leased, slaac, own);
    expect(settledLines([uplink], state(uplink))).toEqual(["address del 2001:db8::2/64 dev eth0"]);
  });

  test("advertised addresses stay for good where there are no others, with the networks they are of", () => {
    const uplink = link(slaac);
    const stranger = route({ destination: "2001:db8:5::/64", protocol: KERNEL, metric: 256 });
    expect(settledLines([uplink], state(uplink, advertised, prefix, stranger))).toEqual([
      "route replace ::/0 via fe80::1 dev eth0 metric 1024 proto static",
      "route del 2001:db8:5::/64 dev eth0 metric 256 proto 2",
      "address change 2001:db8::2/64 dev eth0 valid_lft forever preferred_lft forever",
    ]);
  });

  test("other links stay as they are", () => {
    const elsewhere = route({ device: "net1" });
    expect(settledLines([link(own)], state(link(own), elsewhere))).toEqual([]);
  });
});
