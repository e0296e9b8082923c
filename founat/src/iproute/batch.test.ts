import { describe, expect, test } from "vitest";
import { type Routing, routingLines } from "./batch.ts";
import { parseNetworkState } from "./parse.ts";
import { LOCAL_TABLE } from "./state.ts";

const OWN_TABLE = 118;

const wanted: Routing = {
  bypassRules: [],
  rules: [],
  routes: [
    { family: "ipv4", table: OWN_TABLE, destination: "0.0.0.0/0", type: "unicast", device: "fou4" },
    { family: "ipv6", table: OWN_TABLE, destination: "::/0", type: "unicast", device: "fou6" },
    { family: "ipv6", table: LOCAL_TABLE, destination: "2001:db8:9::/64", type: "local", device: "lo" },
  ],
};

// As `ip -N -json -details route show table all` prints them.
const ours = { type: "1", dst: "default", table: "118", protocol: "30" };
const own = [
  { ...ours, dev: "fou4" },
  { ...ours, dev: "fou6", metric: 1024, pref: "medium" },
  { ...ours, type: "2", dst: "2001:db8:9::/64", dev: "lo", table: "255", metric: 1024, pref: "medium" },
];
const foreign4 = { ...ours, dev: "eth0", protocol: "3" };
const foreign6 = { ...foreign4, metric: 1024, pref: "medium" };

function lines(family: "ipv4" | "ipv6", ...routes: readonly object[]): string[] {
  const state = parseNetworkState([`[]\n${JSON.stringify(routes)}\n`]);
  return routingLines(family, wanted, state, [OWN_TABLE, LOCAL_TABLE], new Set());
}

test("routes that are as wanted are left alone", () => {
  expect(lines("ipv4", ...own)).toEqual([]);
  expect(lines("ipv6", ...own)).toEqual([]);
});

describe("a route of somebody else's in a table that is founat's alone is taken away, whatever it is", () => {
  test.each([
    ["another metric", { ...foreign6, metric: 1, dev: "lo" }, "::/0 dev lo table 118 metric 1 proto 3"],
    ["the same metric", foreign6, "::/0 dev eth0 table 118 metric 1024 proto 3"],
    [
      "founat's own protocol number",
      { ...foreign6, gateway: "fe80::bad", protocol: "30" },
      "::/0 via fe80::bad dev eth0 table 118 metric 1024 proto 30",
    ],
    [
      "a nexthop object",
      { ...foreign6, gateway: "fe80::bad", nhid: 7 },
      "::/0 nhid 7 table 118 metric 1024 proto 3",
    ],
    [
      "some sources only",
      { ...foreign6, from: "2001:db8::/32" },
      "::/0 from 2001:db8::/32 dev eth0 table 118 metric 1024 proto 3",
    ],
    [
      "another destination, which it refuses",
      { ...foreign6, type: "6", dst: "2001:db8:7::/48" },
      "blackhole 2001:db8:7::/48 table 118 metric 1024 proto 3",
    ],
  ])("for %s", (_, route, words) => {
    for (const routes of [
      [...own, route],
      [route, ...own],
    ]) {
      expect(lines("ipv6", ...routes)).toEqual([`route del ${words}`]);
    }
  });

  test("for one kind of service", () => {
    expect(lines("ipv4", ...own, { ...foreign4, tos: "0x10" })).toEqual([
      "route del 0.0.0.0/0 tos 0x10 dev eth0 table 118 metric 0 proto 3",
    ]);
  });
});

test("what stands in the place of a wanted route is replaced, and what stands beside it goes", () => {
  const [, , local] = own;
  expect(lines("ipv6", foreign6, { ...foreign6, dev: "net1" }, local ?? {})).toEqual([
    "route replace ::/0 dev fou6 table 118 proto 30",
    "route del ::/0 dev net1 table 118 metric 1024 proto 3",
  ]);
});

test("in the kernel's own tables the routes of others stay", () => {
  const others = ["2", "3"].map((protocol) => ({
    ...{ type: "2", dst: "fd00:1::4", dev: "eth0", table: "255", metric: 0, pref: "medium" },
    protocol,
  }));
  expect(lines("ipv6", ...own, ...others)).toEqual([]);
});
