import { expect, test } from "vitest";
import { linkChanges, linkName, linkRemovals, type TunnelLink } from "./links.ts";
import { parseNetworkState } from "./parse.ts";

const link4: TunnelLink = {
  family: "ipv4",
  sourcePortAuto: false,
  port: 5555,
  local: "10.9.0.2",
  uplink: "eth0",
  mtu: 1472,
};
const link6: TunnelLink = { ...link4, family: "ipv6", local: "fd00::1", mtu: 1452 };

const ENCAP = { type: "fou", sport: 5555, dport: 5555, csum: false, csum6: false, remcsum: false };

/** Of both families. */
const SHOWN = { flags: ["NOARP", "UP", "LOWER_UP"], group: "119" };

/** What `ip -N -json -details addr show` of iproute2 6.1 prints of such links, as far as it matters. */
const fou4 = {
  ...{ ifname: "fou4", mtu: 1472, ...SHOWN },
  linkinfo: {
    info_kind: "ipip",
    info_data: {
      ...{ proto: "any", remote: "any", local: "10.9.0.2", ttl: 225, tos: "0x1", pmtudisc: true },
      encap: ENCAP,
    },
  },
  addr_info: [{ family: "inet", local: "192.0.0.8", prefixlen: 32, scope: "254" }],
};
const fou6 = {
  ...{ ifname: "fou6", mtu: 1452, ...SHOWN },
  linkinfo: {
    info_kind: "ip6tnl",
    info_data: {
      ...{ proto: "ip6ip6", remote: "any", local: "fd00::1", ttl: 225, flowlabel: "0x00000" },
      ip6_tnl_f_ign_encap_limit: true,
      ip6_tnl_f_use_orig_tclass: true,
      encap: ENCAP,
    },
  },
  addr_info: [],
};

function changes(...links: readonly object[]) {
  const state = parseNetworkState([`${JSON.stringify(links)}\n[]\n[]\n[]\n`, ""]);
  return linkChanges({ fouPorts: [], links: [link4, link6] }, state);
}

function withData({ linkinfo, ...link }: typeof fou4 | typeof fou6, data: object) {
  return { ...link, linkinfo: { ...linkinfo, info_data: { ...linkinfo.info_data, ...data } } };
}

test("links that are as wanted are left alone", () => {
  expect(changes(fou4, fou6)).toEqual({ make: [], bringUp: [], replaced: new Set() });
});

test("a port that carries another protocol is made anew", () => {
  const wanted = {
    fouPorts: [{ family: "ipv4", port: 5555 } as const, { family: "ipv6", port: 5555 } as const],
    links: [],
  };
  const make = (...ports: readonly object[]) =>
    linkChanges(wanted, parseNetworkState([`[]\n[]\n${JSON.stringify(ports)}\n[]\n`, ""])).make;
  const port4 = { port: 5555, ipproto: 4, family: "inet" };
  const port6 = { port: 5555, ipproto: 41, family: "inet6" };
  expect(make(port4, port6)).toEqual([]);
  expect(make({ ...port4, ipproto: 47 }, port6)).toEqual([
    "fou del port 5555",
    "fou add port 5555 ipproto 4",
  ]);
  expect(make(port4, { ...port6, ipproto: 4 })).toEqual([
    "fou del port 5555 -6",
    "fou add port 5555 ipproto 41 -6",
  ]);
  expect(make({ port: 5555, gue: null, family: "inet" }, port6)).toEqual([
    "fou del port 5555",
    "fou add port 5555 ipproto 4",
  ]);
  expect(make({ ...port4, local: "10.9.0.2", dev: "eth0" }, port6)).toEqual([
    "fou del port 5555 local 10.9.0.2 dev eth0",
    "fou add port 5555 ipproto 4",
  ]);
});

test.each([
  ["local", { local: "10.9.0.3" }],
  ["remote", { remote: "10.9.0.7" }],
  ["ttl", { ttl: 64 }],
  ["tos", { tos: "0x0" }],
  ["source port", { encap: { ...ENCAP, sport: 0 } }],
  ["destination port", { encap: { ...ENCAP, dport: 5556 } }],
  ["checksum", { encap: { ...ENCAP, csum: true } }],
])("an IPv4 link with another %s is made anew", (_, data) => {
  expect(changes(withData(fou4, data), fou6).replaced).toEqual(new Set(["fou4"]));
});

test("a link of another group is made anew", () => {
  expect(changes(fou4, { ...fou6, group: "0" }).replaced).toEqual(new Set(["fou6"]));
});

test("a link to one peer is told by its remote, and inherits nothing", () => {
  const peer = { ...link4, remote: "10.96.0.10" };
  const name = linkName(peer);
  const state = (data: object) =>
    parseNetworkState([
      `${JSON.stringify([{ ...withData(fou4, data), ifname: name, group: "118" }])}\n[]\n[]\n[]\n`,
      "",
    ]);
  const wanted = { fouPorts: [], links: [peer] };
  expect(name).toMatch(/^fou4_[0-9a-f]{8}$/);
  expect(linkChanges(wanted, state({ remote: "10.96.0.10", tos: "0x0" })).replaced).toEqual(new Set());
  expect(linkChanges(wanted, state({ remote: "10.96.0.11", tos: "0x0" })).replaced).toEqual(new Set([name]));
  expect(linkChanges(wanted, state({ remote: "10.96.0.10" })).replaced).toEqual(new Set([name]));
});

test.each([
  ["local", { local: "fd00::2" }],
  ["remote", { remote: "fd00::7" }],
  ["ttl", { ttl: 64 }],
  ["traffic class", { ip6_tnl_f_use_orig_tclass: undefined, tclass: "0x00" }],
  ["encapsulation limit", { ip6_tnl_f_ign_encap_limit: undefined, encap_limit: 4 }],
  ["source port", { encap: { ...ENCAP, sport: 0 } }],
  ["checksum", { encap: { ...ENCAP, csum6: true } }],
])("an IPv6 link with another %s is made anew", (_, data) => {
  expect(changes(fou4, withData(fou6, data)).replaced).toEqual(new Set(["fou6"]));
});

test("a link that had another name, and the addresses of a wanted one, gives way to it", () => {
  const state = parseNetworkState([`${JSON.stringify([fou4, fou6])}\n[]\n[]\n[]\n`, ""]);
  const wanted = { fouPorts: [], links: [{ ...link4, receiving: true }, link6] };
  const { make, replaced } = linkChanges(wanted, state);
  expect(make.slice(0, 2)).toEqual(["link del fou4", expect.stringMatching(/^link add egress4 /)]);
  expect(replaced).toEqual(new Set(["fou4", "egress4"]));
  expect(linkRemovals(wanted, state)).toEqual([]);
});

test("a link that is down, or has another MTU, is put right as it is", () => {
  expect(changes({ ...fou4, mtu: 1400 }, { ...fou6, flags: [] })).toEqual({
    make: ["link set fou6 addrgenmode none"],
    bringUp: ["link set fou4 mtu 1472 up", "link set fou6 mtu 1452 up"],
    replaced: new Set(),
  });
});
