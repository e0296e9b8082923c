import { FAMILIES } from "@egress-nat/addresses";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { situation } from "../testing/arbitrary.ts";
import { egress } from "../testing/configs.ts";
import { everywhere, useClientAndGateway } from "../testing/data-path.ts";
import { addressOf, ask, chatter, forgetLeaks, inside, leaks, refused } from "../testing/topology.ts";
import { netnsWatchCommand } from "../watch/netns-watch.ts";

const { client } = useClientAndGateway();
const internet = FAMILIES.map((family) => addressOf("internet", family));

const NETNS = "/run/netns/client";
const WATCH = "/run/watch";

beforeAll(async () => {
  await client.apply(everywhere);
  await startWatch();
  await noticed();
});

afterAll(async () => {
  await machine.run(`kill $(cat ${WATCH}/pid); rm -r ${WATCH}`);
});

/** The product's own watch of one namespace. */
async function startWatch(): Promise<void> {
  const script = `
    mkdir ${WATCH} && cd ${WATCH} && mkfifo in
    "$@" <in >out 2>err & echo $! >pid
    exec 3>in; echo watch ${NETNS} >&3
    sleep infinity >/dev/null 2>&1 <&- & echo $! >>pid`;
  await machine.run(["sh", "-c", script, "sh", ...netnsWatchCommand()]);
}

/** Waits until the watch has told of a change since it was asked last. */
async function noticed(): Promise<void> {
  await machine.run(
    `cd ${WATCH}
     for i in $(seq 300); do grep -q "changed ${NETNS}" out && break; sleep 0.1; done
     grep -q "changed ${NETNS}" out || { cat err >&2; exit 1; }`,
  );
}

/** Until nothing has happened for longer than the watch takes to see it. */
async function quiet(): Promise<void> {
  await machine.run(`cd ${WATCH}; : >out; while sleep 1.5; [ -s out ]; do : >out; done`);
}

test("nothing differs once it is applied, whatever Egresses ask for and the addresses of gateways are", async () => {
  const peers = fc.constantFrom(["10.1.0.40", "10.1.0.41", "fd00:1::40", "fd00:1::41"], ["10.1.0.41"], []);
  const property = fc.asyncProperty(situation, peers, async ({ carriers, clusterRanges }, others) => {
    const egresses = carriers.map(({ name, destinations, excluded }, index) => {
      const address = `10.1.0.${200 + index}`;
      const gateway = { ipv4: address };
      return { ...egress(), name, destinations, excluded, gateway, peers: [address, ...others] };
    });
    const config = { ...everywhere, egresses, clusterRanges };
    await client.apply(config);
    expect(await client.check(config)).toEqual([]);
  });
  await fc.assert(property, { numRuns: 5, endOnFailure: true });
  await client.apply(everywhere);
});

/** Somebody else's doing, by what is lost. */
const ROUTING: readonly (readonly [string, string])[] = [
  ["the rules to the tunnel", "ip rule del pref 2100; ip -6 rule del pref 2100"],
  ["all rules of founat", "for v in 4 6; do ip -$v rule flush; ip -$v rule add pref 32766 lookup main; done"],
  ["the routes into the tunnel", "ip route flush table 118; ip -6 route flush table 118"],
  ["the dead ends of those routes", "ip route flush table 120; ip -6 route flush table 120"],
  ["the routes into the tunnel, by one above them", "ip -6 route add default dev lo table 118 metric 1"],
  [
    "the routes into the tunnel, by others beside them",
    `ip -6 route append default via fd00:1::1 dev eth0 table 118
     ip -6 route add default from fd00:1::/64 via fd00:1::1 dev eth0 table 118
     ip -6 route add blackhole 2001:db8:7::/48 table 117
     ip route prepend default via 10.1.0.1 dev eth0 table 118
     ip route add default via 10.1.0.1 dev eth0 table 118 tos 0x10
     ip route add prohibit 198.51.100.0/24 table 117`,
  ],
  ["the links", "for l in $(ip -brief link | grep -oE '^(fou|egress)[^@ ]*'); do ip link del $l; done"],
  [
    "the links' MTU",
    "for l in $(ip -brief link | grep -oE '^(fou|egress)[^@ ]*'); do ip link set $l mtu 1280; done",
  ],
  ["the ports of the tunnel", "ip fou del port 5555; ip fou del port 5555 -6"],
  ["a sysctl of the uplink", "sysctl -qw net.ipv4.conf.eth0.rp_filter=1"],
];

const GUARD: readonly (readonly [string, string])[] = [
  ["the table", "nft delete table inet egress_nat_client"],
  ["a chain", "nft delete chain inet egress_nat_client passing"],
  ["a chain's rules", "nft flush chain inet egress_nat_client guard"],
  [
    "one rule",
    `nft delete rule inet egress_nat_client guard handle $(nft -a list chain inet egress_nat_client guard |
       sed -n 's/.*@guarded6.*handle //p')`,
  ],
  [
    "the elements of a set",
    "nft flush set inet egress_nat_client guarded4; nft flush set inet egress_nat_client guarded6",
  ],
  ["which gateways take new flows", "nft flush set inet egress_nat_client picked"],
  [
    "what a set leaves out, by an element with a comment",
    "nft 'add element inet egress_nat_client guarded4 { 10.1.0.128/25 comment \"of somebody else\" }'",
  ],
  [
    "whom a set leaves out, by an element for everybody",
    "nft 'add element inet egress_nat_client peers4 { * }'",
  ],
  [
    "its counters",
    `t="inet egress_nat_client"; without=$(nft -s list table $t | sed 's/counter name "[a-z]*"/counter/')
     { echo "flush table $t"; echo "$without"; } | nft -f -
     nft "delete counter $t rejected; delete counter $t unheard"`,
  ],
  ["a table that is put to sleep", "nft 'add table inet egress_nat_client { flags dormant; }'"],
];

/** @returns the kinds of objects that were repaired once the watch had noticed */
async function takeAway(command: string): Promise<string[]> {
  await quiet();
  await inside("client", command);
  await noticed();
  const { differences } = await client.repair(everywhere);
  return differences.map(({ object }) => object);
}

/** As {@link takeAway}, while the client sends. @param devices to which its sockets are bound; an empty one: to none */
async function takeAwayFromSender(command: string, devices: readonly string[]): Promise<string[]> {
  const silence = await chatter(internet, devices);
  await forgetLeaks();
  const repaired = await takeAway(command);
  await silence();
  return repaired;
}

async function expectRepaired(): Promise<void> {
  expect(await client.check(everywhere)).toEqual([]);
  for (const family of FAMILIES) {
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
  }
}

describe("routing that somebody else takes away is noticed, and the guard alone lets nothing out", () => {
  test.each(ROUTING)("%s", async (_, command) => {
    const repaired = await takeAwayFromSender(command, ["", "eth0"]);
    expect(repaired).not.toEqual([]);
    // That is not blamed on somebody as well.
    for (const ofGuard of ["table", "chain", "set"]) expect(repaired).not.toContain(ofGuard);
    expect(await leaks()).toBe(0);
    await expectRepaired();
  });
});

describe("the guard that somebody else takes away is noticed, and routes alone let nothing out", () => {
  test.each(GUARD)("%s", async (_, command) => {
    expect(await takeAwayFromSender(command, [""])).not.toEqual([]);
    expect(await leaks()).toBe(0);
    await expectRepaired();
  });
});

test("what the guard refuses is told, as much as its counters say", async () => {
  for (const address of internet) await ask("client", "udp", address, { device: "eth0" });
  await vi.waitFor(
    async () => {
      const told = await machine.run(`grep -ao 'counted .*' ${WATCH}/out | tail -n 1`);
      expect(told).toBe(`counted ${NETNS} ${await refused("rejected")} ${await refused("unheard")}\n`);
    },
    { timeout: 30_000, interval: 500 },
  );
});

test("what both lines would hold, and a socket bound to the uplink without the guard, is closed by the repair", async () => {
  const both = `nft delete table inet egress_nat_client
    for table in 118 120; do ip route flush table $table; ip -6 route flush table $table; done`;
  const silence = await chatter(internet);
  expect(new Set(await takeAway(both))).toEqual(new Set(["table", "route"]));
  await forgetLeaks();
  await expectRepaired();
  await silence();
  expect(await leaks()).toBe(0);
});

test("a smaller MTU of the uplink is noticed, and that of the links follows it", async () => {
  expect(await takeAway("ip link set eth0 mtu 1400")).toContain("link");
  expect(await inside("client", "ip link show egress4")).toContain(" mtu 1372 ");
  await takeAway("ip link set eth0 mtu 1500");
  await expectRepaired();
});

test("a smaller MTU of the default route is noticed, and that of the links follows it", async () => {
  const change = (mtu: string) => `ip route change $(ip route show default | sed "s/ mtu [0-9]*//") ${mtu}`;
  expect(await takeAway(change("mtu 1400"))).toContain("link");
  expect(await inside("client", "ip link show egress4")).toContain(" mtu 1372 ");
  await takeAway(change(""));
  await expectRepaired();
});

test("a route of the pod's network is noticed, and wins over the tunnel from then on", async () => {
  await takeAway("ip route add 198.51.100.0/24 via 10.1.0.1");
  expect(await inside("client", "nft list set inet egress_nat_client guarded4")).toContain("198.51.99.255");
  await takeAway("ip route del 198.51.100.0/24");
  await expectRepaired();
});
