import { describe, expect, test } from "vitest";
import { guardOf } from "../backends/nft/guard.ts";
import { linkName } from "../iproute/links.ts";
import { renderSteps } from "../testing/golden.ts";
import { clientChanges } from "./changes.ts";
import type { ClientConfig, ClientEgress, ClientGateway } from "./config.ts";
import { type ClientFacts, planClient, planWays } from "./plan.ts";

const NOTHING = {
  links: [],
  routes: [],
  rules: [],
  fouPorts: [],
  sysctls: new Map([
    ["net/core/txrehash", "1"],
    ["net/ipv6/conf/eth0/accept_ra", "1"],
    ["net/ipv6/conf/eth0/accept_redirects", "1"],
  ]),
};

const facts: ClientFacts = {
  uplink: { name: "eth0", mtu: 1500, addresses: { ipv4: "10.244.1.7", ipv6: "fd00:244:1::7" } },
  mainRoutes: ["10.244.1.0/24", "fd00:244:1::/64", "fe80::/64"],
  forget: [],
  needsAdvertisements: false,
  families: ["ipv4", "ipv6"],
  pins: new Map(),
  ways: [],
};

function egress(changes: Partial<ClientEgress>): ClientEgress {
  return {
    name: "internet-egress/nat",
    destinations: ["0.0.0.0/0"],
    excluded: [],
    gateways: [{ ipv4: "10.96.0.10", ipv6: "fd00:96::10" }],
    peers: ["10.96.0.10", "fd00:96::10", "10.244.2.9", "fd00:244:2::9"],
    port: 5555,
    sourcePortAuto: false,
    originatingOnly: true,
    ...changes,
  };
}

const wide = egress({ destinations: ["0.0.0.0/0", "::/0"] });
const narrow = egress({
  name: "domestic-egress/nat",
  destinations: ["192.168.10.0/24", "fd12:3456::/48"],
  gateways: [{ ipv4: "10.96.0.11", ipv6: "fd00:96::11" }],
  peers: ["10.96.0.11", "fd00:96::11"],
});
const inCluster = ["10.96.0.0/16", "10.244.0.0/16", "fd00:96::/112", "fd00:244::/48"];

test.each<[string, Partial<ClientConfig> & { egresses: readonly ClientEgress[] }]>([
  ["one wide Egress, IPv4", { egresses: [wide].map((e) => ({ ...e, destinations: ["0.0.0.0/0"] })) }],
  ["one wide Egress, IPv6", { egresses: [wide].map((e) => ({ ...e, destinations: ["::/0"] })) }],
  ["one wide Egress, dual stack", { egresses: [wide] }],
  [
    "narrow and wide, with an exclusion that the wide one does not share",
    {
      egresses: [wide, { ...narrow, excluded: ["192.168.10.128/25"] }],
    },
  ],
  [
    "an exclusion that another Egress covers",
    {
      egresses: [
        wide,
        egress({
          name: "partner/nat",
          destinations: ["203.0.113.0/24"],
          excluded: ["203.0.113.7/32"],
          gateways: [{ ipv4: "10.96.0.12" }],
        }),
      ],
    },
  ],
  [
    "in-cluster ranges that are not RFC 1918",
    {
      egresses: [wide],
      clusterRanges: ["100.64.0.0/10", "172.32.0.0/16", "2001:db8:244::/48"],
    },
  ],
  [
    "an in-cluster range within a narrow destination",
    {
      egresses: [{ ...narrow, destinations: ["10.0.0.0/8"] }],
    },
  ],
  [
    "fixed and automatic source ports side by side",
    {
      egresses: [wide, { ...narrow, sourcePortAuto: true }],
    },
  ],
  [
    "an Egress without a gateway of one family",
    { egresses: [{ ...wide, gateways: [{ ipv4: "10.96.0.10" }] }] },
  ],
])("the commands for %s", async (name, config) => {
  const plan = planClient({ uplink: "eth0", clusterRanges: inCluster, ...config }, facts);
  const file = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  await expect(
    renderSteps(clientChanges(plan, NOTHING, guardOf(plan.policy).changes(undefined)).steps),
  ).toMatchFileSnapshot(`testdata/${file}.txt`);
});

test("a second port is refused, with the names of both Egresses", () => {
  const config = { uplink: "eth0", egresses: [wide, { ...narrow, port: 5556 }], clusterRanges: [] };
  expect(() => planClient(config, facts)).toThrow(
    "Egress internet-egress/nat uses port 5555 and domestic-egress/nat port 5556",
  );
});

describe("a list of gateways", () => {
  const [ipv4, ipv6] = [{ ipv4: "10.96.0.10" }, { ipv6: "fd00:96::10" }];
  const planFor = (...gateways: readonly ClientGateway[]) => planWith(new Map(), ...gateways);
  const planWith = (pins: ReadonlyMap<string, number>, ...gateways: readonly ClientGateway[]) =>
    planClient({ uplink: "eth0", egresses: [{ ...wide, gateways }], clusterRanges: [] }, { ...facts, pins });

  test("with one address of each family is the gateway that has both", () => {
    const { policy, routes, probes } = planFor({ ...ipv4, ...ipv6 });
    expect(planFor(ipv4, ipv6)).toMatchObject({
      policy,
      routes,
      probes: probes.map(({ address }) => ({ address })),
    });
  });

  test("that is empty leaves all guarded, and no gateway to ask", () => {
    const { policy, links, probes } = planFor();
    expect(policy.families.ipv4.guarded).toEqual(planFor(ipv4).policy.families.ipv4.guarded);
    expect(links.map(linkName)).toEqual(["egress4", "egress6"]);
    expect(probes).toEqual([]);
  });

  test("belongs to the Egress whose new flows begin with it, whoever else keeps flows there", () => {
    const address = { ipv4: "10.96.0.11" };
    const pins = new Map([["fou4_77b09cc9", 7]]);
    const config = (keeper: ClientEgress, user: ClientEgress) => ({
      uplink: "eth0",
      egresses: [keeper, user],
      clusterRanges: [],
    });
    const keeper = { ...wide, gateways: [ipv4, { ...address, flows: "existing" } as const] };
    const user = { ...narrow, gateways: [address] };
    for (const egresses of [config(keeper, user), config(user, keeper)]) {
      const { choices } = planClient(egresses, { ...facts, pins }).policy;
      expect(choices.find(({ link }) => link === "fou4_77b09cc9")?.pins.map(({ number }) => number)).toEqual([
        7,
      ]);
    }
  });

  test("with two that take new flows has a link and a mark for each, and lets chance decide", () => {
    const { policy, links } = planFor(ipv4, { ipv4: "10.96.0.11" });
    expect(links.map(linkName)).toEqual(["egress4", "fou4_cdf04098", "fou4_77b09cc9", "egress6"]);
    const [one, other] = policy.pins;
    expect(one?.mark.value).not.toBe(other?.mark.value);
    expect(policy.choices).toEqual(
      ["fou4_77b09cc9", "fou4_cdf04098"].map((link) => ({ link, pins: [one, other] })),
    );
  });

  test.each<[string, string[], ClientGateway[], [oneWay: boolean, isInterim: boolean]]>([
    ["one, and nothing is there yet", [], [ipv4], [true, false]],
    ["one of each family", [], [{ ...ipv4, ...ipv6 }], [true, false]],
    ["one, as it is there", ["fou4_cdf04098"], [ipv4], [true, false]],
    ["one, as it is there with another source port", ["fou4a_cdf04098"], [ipv4], [true, false]],
    [
      "one, as long as there is a link to another one",
      ["fou4_cdf04098", "fou4_77b09cc9"],
      [ipv4],
      [false, true],
    ],
    ["one, as long as routes lead to none", ["egress4"], [ipv4], [false, true]],
    ["one, unless it only keeps its flows", ["egress4"], [{ ...ipv4, flows: "existing" }], [false, false]],
    ["two of a family", [], [ipv4, { ipv4: "10.96.0.11" }], [false, false]],
    ["none", ["egress4"], [], [true, false]],
  ])("knows one way only with %s", (_, links, gateways, expected) => {
    const pins = new Map([["fou4_cdf04098", 7]]);
    const former = links.map((link) => ({ family: "ipv4" as const, link }));
    const config = { uplink: "eth0", egresses: [{ ...wide, gateways }], clusterRanges: [] };
    const { policy, isInterim } = planClient(config, { ...facts, pins, ways: former });
    expect([policy.oneWay, isInterim]).toEqual(expected);
  });

  test("leaves out what has to wait for the marks of others that go, and asks for another look", () => {
    const config = { uplink: "eth0", egresses: [wide], clusterRanges: [], markMask: 0x3 };
    const held = new Map([["fou4_00000001", 1]]);
    const { policy, links, isInterim } = planClient(config, { ...facts, pins: held });
    expect(isInterim).toBe(true);
    expect(links.map(linkName)).toEqual(["egress4", "fou4_cdf04098", "egress6"]);
    expect(policy.choices.map(({ link }) => link)).toEqual(["fou4_cdf04098"]);
    const after = planClient(config, { ...facts, pins: new Map([["fou4_cdf04098", 2]]) });
    expect([after.isInterim, after.policy.pins.length]).toEqual([false, 2]);
  });

  test("has flows begin with those that it tells apart where there are more", () => {
    const gateways = [1, 2, 3].map((index) => ({ ipv4: `10.96.0.1${index}` }));
    const config = {
      ...{ uplink: "eth0", clusterRanges: [], markMask: 0x3 },
      egresses: [{ ...wide, gateways }],
    };
    const { policy, isInterim } = planClient(config, facts);
    expect([policy.pins.length, policy.choices.length, isInterim]).toEqual([2, 2, true]);
  });

  describe("one of which only keeps its flows", () => {
    const leaving: ClientGateway = { ipv4: "10.96.0.11", flows: "existing" };
    const link = "fou4_77b09cc9";

    test("gives it no link where it has none: no flow can have begun there", () => {
      expect(planFor(ipv4, leaving)).toEqual(planFor(ipv4));
    });

    test("leaves it its link and its mark where it has, and new flows go elsewhere", () => {
      const { policy, links, routes } = planWith(new Map([[link, 7]]), leaving, ipv4);
      expect(links.map(linkName)).toContain(link);
      const pin = policy.pins.find((each) => each.link === link);
      expect(pin?.number).toBe(7);
      expect(policy.choices.flatMap(({ pins }) => pins)).not.toContain(pin);
      expect(policy.choices.map((choice) => choice.link)).toContain(link);
      expect(new Set(routes.map(({ device }) => device))).toEqual(
        new Set([undefined, "fou4_cdf04098", "egress6"]),
      );
    });
  });
});

describe("what routes lead to a link that is gone by the plan", () => {
  const GONE = "fou4_00000001";
  const [internet, domestic] = ["118 0.0.0.0/0", "117 192.168.10.0/24"];
  const [toWide, toNarrow] = ["fou4_cdf04098", "fou4_77b09cc9"];
  const config = (...egresses: readonly ClientEgress[]) => ({ uplink: "eth0", egresses, clusterRanges: [] });
  const closed = { ...wide, gateways: [] };
  const waysBy = (routes: Readonly<Record<string, string>>) =>
    Object.entries(routes).map(([to, link]) => {
      const [table, destination = ""] = to.split(" ");
      return { family: "ipv4" as const, link, route: { table: Number(table), destination } };
    });

  test.each<[string, ClientEgress[], Record<string, string>, string[], isInterim: boolean]>([
    ["begins with the gateway of its Egress", [wide, narrow], { [internet]: GONE }, [toWide], true],
    ["does with that of the other one", [wide, narrow], { [domestic]: GONE }, [toNarrow], true],
    [
      "begins with none where both lead there",
      [wide, narrow],
      { [internet]: GONE, [domestic]: GONE },
      [],
      false,
    ],
    [
      "begins with none where one of them has no gateway",
      [closed, narrow],
      { [internet]: GONE, [domestic]: GONE },
      [],
      false,
    ],
    ["begins with none where its Egress has no gateway", [closed, narrow], { [internet]: GONE }, [], false],
    ["begins with none where nobody carries it now", [wide, narrow], { "117 10.0.0.0/8": GONE }, [], false],
    ["does without where all Egresses choose alike", [wide], { [internet]: GONE }, [], true],
    [
      "goes on as planned where its link is chosen",
      [wide, narrow],
      { [internet]: toWide, [domestic]: toWide },
      [toWide],
      false,
    ],
  ])("%s", (_, egresses, routes, links, isInterim) => {
    const ways = waysBy(routes);
    const plan = planClient(config(...egresses), { ...facts, ways });
    const [former] = Object.values(routes);
    const begun = plan.policy.choices.filter(({ link }) => link === former).flatMap(({ pins }) => pins);
    expect([begun.map(({ link }) => link), plan.isInterim]).toEqual([links, isInterim]);
  });

  const keeping = {
    ...narrow,
    gateways: [...narrow.gateways, { ipv4: "10.96.0.10", flows: "existing" as const }],
  };
  test.each<[string, ClientEgress[], Record<string, string>, isLed: boolean]>([
    [
      "is no gateway's yet where it was another Egress's",
      [wide, narrow],
      { [domestic]: toWide, [internet]: GONE },
      false,
    ],
    [
      "is none's yet either with other source ports",
      [{ ...wide, sourcePortAuto: true }, narrow],
      { [domestic]: toWide, [internet]: GONE },
      false,
    ],
    ["is where its Egress has handed over all that it had", [wide, narrow], { [domestic]: toWide }, true],
    [
      "is, once flows of that one are ended",
      [wide, narrow],
      { [domestic]: toNarrow, [internet]: GONE },
      true,
    ],
    ["is where some of its routes stay", [wide, narrow], { [internet]: toWide, [domestic]: toWide }, true],
    [
      "is where that one has flows there still",
      [wide, keeping],
      { [domestic]: toWide, [internet]: GONE },
      true,
    ],
    [
      "is where nobody carries what its routes are to",
      [wide, narrow],
      { "117 10.0.0.0/8": toWide, [internet]: GONE },
      true,
    ],
  ])("the link of a gateway %s", (_, egresses, routes, isLed) => {
    const known = { ...facts, pins: new Map([[toWide, 7]]), ways: waysBy(routes) };
    const { links, policy, isInterim } = planClient(config(...egresses), known);
    const isOfGateway = (name: string) => name.endsWith(toWide.slice(-8));
    expect(links.map(linkName).some(isOfGateway)).toBe(isLed);
    expect(policy.pins.some(({ link }) => isOfGateway(link))).toBe(isLed);
    if (!isLed) expect(isInterim).toBe(true);
  });
});

test("with other gateways flows go where a plan of these would lead them, whoever carries what", () => {
  const [a, b]: ClientGateway[] = [
    { ipv4: "10.244.2.1", ipv6: "fd00:244:2::1" },
    { ipv4: "10.244.2.2", ipv6: "fd00:244:2::2" },
  ];
  const configWith = (...gateways: readonly ClientGateway[]): ClientConfig => ({
    ...{ uplink: "eth0", clusterRanges: [] },
    egresses: [
      egress({ name: "internet/wide", destinations: ["0.0.0.0/0", "::/0"], gateways }),
      egress({ name: "internet/narrow", destinations: ["192.0.2.0/24"], gateways: gateways.toReversed() }),
      egress({ name: "internet/nothing", destinations: ["::/0"], gateways }),
    ],
  });
  const known = { ...facts, pins: new Map([["fou4_77b09cc9", 7]]) };
  const plan = planClient(configWith(a as ClientGateway), known);
  for (const gateways of [[a, b], [b], [], [{ ...b, flows: "existing" }, a]] as ClientGateway[][]) {
    const { links, policy } = planClient(configWith(...gateways), known);
    const { pins, choices, late } = policy;
    expect(planWays(plan, configWith(...gateways), known)).toEqual({ links, pins, choices, late });
  }
});
