import { FAMILIES } from "@egress-nat/addresses";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { clientConfig, egress } from "../testing/configs.ts";
import { everywhere, useClientAndGateway } from "../testing/data-path.ts";
import {
  ADDRESSES,
  addressOf,
  ask,
  forge,
  forgetLeaks,
  inside,
  leaks,
  listen,
  refused,
  seenBy,
} from "../testing/topology.ts";

const { client } = useClientAndGateway();
const FOREIGN = { ipv4: "203.0.113.77", ipv6: "2001:db8:77::7" };

beforeEach(forgetLeaks);

test("what the guard rejects is counted", async () => {
  await client.apply(everywhere);
  const rejected = () => refused("rejected");
  for (const family of FAMILIES) {
    const before = await rejected();
    await ask("client", "udp", addressOf("internet", family), { device: "eth0" });
    expect(await rejected()).toBe(before + 1);
  }
});

describe.each(FAMILIES)("a socket with an address of somebody else (%s)", (family) => {
  const internet = addressOf("internet", family);
  const source = FOREIGN[family];
  const timeout = 1;
  const seen = async () => (await seenBy("internet")).filter((line) => line.startsWith(source));

  test("the control: without an Egress what it sends reaches the internet", async () => {
    await client.remove();
    await ask("client", "udp", internet, { source, transparent: true, timeout });
    await vi.waitFor(async () => expect(await seen()).toHaveLength(1), { timeout: 10_000 });
  });

  test.each([
    { transparent: true },
    { transparent: true, device: "eth0" },
    ...(family === "ipv6" ? [{}, { device: "eth0" }] : []),
  ])("sends nothing, neither around the tunnel nor through it, with %j", async (options) => {
    await client.apply(everywhere);
    await inside(
      "router",
      `nft 'add table inet foreign; add counter inet foreign bare; add chain inet foreign c { type filter hook prerouting priority raw; }
       add rule inet foreign c ${family === "ipv4" ? "ip" : "ip6"} saddr ${source} counter name bare'`,
    );
    const before = (await seen()).length;
    const answer = await ask("client", "udp", internet, { source, timeout, ...options });
    expect(answer).toMatch(options.device ? /^EPERM$/ : /^timeout$/);
    expect(await inside("router", "nft list counter inet foreign bare")).toContain("packets 0");
    expect(await seen()).toHaveLength(before);
    // Nor does an error that quotes it, to whose address it is.
    expect(await leaks()).toBe(0);
    await inside("router", "nft delete table inet foreign");
  });
});

test("a program makes up no inbound flow, to answer it around the tunnel", async () => {
  await client.apply(everywhere);
  const own = addressOf("client", "ipv6");
  await listen("client", 9400, { address: own });
  const source = addressOf("internet", "ipv6");
  expect(await ask("client", "udp", own, { port: 9400, source, source_port: 7003, timeout: 2 })).toBe(
    "EPERM",
  );
  expect(await leaks()).toBe(0);
  expect(await seenBy("client", 9400)).toEqual([]);
});

describe("with an Egress for IPv4 only", () => {
  const guarded = "64:ff9b::c000:202";
  const excluded = "64:ff9b::cb00:7101";

  beforeAll(async () => {
    await inside("internet", `for a in ${guarded} ${excluded}; do ip address add $a/128 dev lo nodad; done`);
    await inside("router", "ip route add 64:ff9b::/96 via 2001:db8::2");
  });

  test("its destinations are out of reach by way of a translator (NAT64), others are not", async () => {
    await client.remove();
    expect(await ask("client", "tcp", guarded)).toBe(addressOf("client", "ipv6"));
    await client.apply(clientConfig(egress({ destinations: ["0.0.0.0/0"], excluded: ["203.0.113.0/24"] })));
    expect(await ask("client", "tcp", guarded)).toBe("EACCES");
    expect(await ask("client", "udp", guarded, { device: "eth0" })).toBe("EPERM");
    expect(await ask("client", "tcp", excluded)).toBe(addressOf("client", "ipv6"));
    expect(await ask("client", "tcp", addressOf("internet", "ipv6"))).toBe(addressOf("client", "ipv6"));
  });

  test("with one for both the translator is asked by the gateway", async () => {
    await client.apply(everywhere);
    expect(await ask("client", "tcp", guarded)).toBe(addressOf("gateway", "ipv6"));
    expect(await leaks()).toBe(0);
  });
});

test("IPv4 addresses in the spelling of IPv6 are refused, whatever the Egress carries", async () => {
  for (const destinations of [["0.0.0.0/0"], ["0.0.0.0/0", "::/0"]]) {
    await client.apply(clientConfig(egress({ destinations })));
    expect(await ask("client", "udp", "::c000:202", { timeout: 2 })).toBe("EPERM");
  }
  expect(await leaks()).toBe(0);
});

test("a source route takes no packet to somebody who would send it on", async () => {
  const [route, internet] = [addressOf("stranger", "ipv4"), addressOf("internet", "ipv4")];
  await inside(
    "router",
    `nft 'add table inet sources; add counter inet sources routed
     add chain inet sources c { type filter hook prerouting priority raw; }
     add rule inet sources c ip option lsrr exists counter name routed'`,
  );
  const sent = () => inside("router", "nft list counter inet sources routed");
  await client.remove();
  await ask("client", "udp", internet, { route, timeout: 1 });
  expect(await sent()).toContain("packets 1 ");
  await client.apply(everywhere);
  expect(await ask("client", "udp", internet, { route, timeout: 1 })).toBe("EPERM");
  expect(await sent()).toContain("packets 1 ");
  await inside("router", "nft delete table inet sources");
});

describe("a routing header", () => {
  const route = addressOf("stranger", "ipv6");
  const internet = addressOf("internet", "ipv6");
  const sent = async () => Number(/packets (\d+)/.exec(await inside("router", COUNTED))?.[1]);
  const COUNTED = "nft list counter inet headers routed";
  const SEGMENT_ROUTING = "sysctl -qw net.ipv6.conf.all.seg6_enabled=1 net.ipv6.conf.eth0.seg6_enabled=1";

  beforeAll(() =>
    inside(
      "router",
      `nft 'add table inet headers; add counter inet headers routed
       add chain inet headers c { type filter hook prerouting priority raw; }
       add rule inet headers c meta nfproto ipv6 exthdr rt exists counter name routed'`,
    ),
  );

  afterAll(() => inside("router", "nft delete table inet headers"));

  test("takes no packet to somebody who would send it on", async () => {
    await client.remove();
    await ask("client", "udp", internet, { route, timeout: 1 });
    expect(await sent()).toBe(1);
    await client.apply(everywhere);
    expect(await ask("client", "udp", internet, { route, timeout: 1 })).toBe("EPERM");
    expect(await sent()).toBe(1);
  });

  test("is no way through a client, even where it takes part in segment routing", async () => {
    const neighbour = addressOf("neighbour", "ipv6");
    const arrived = async () => (await seenBy("internet")).filter((line) => line.startsWith(`${neighbour} `));
    const send = () => ask("neighbour", "udp", internet, { route: addressOf("client", "ipv6"), timeout: 1 });
    await client.remove();
    await inside("client", "sysctl -qw net.ipv6.conf.all.forwarding=1");
    for (const host of ["client", "internet"] as const) await inside(host, SEGMENT_ROUTING);
    await send();
    expect(await arrived()).toHaveLength(1);
    await client.apply(everywhere);
    await forgetLeaks();
    await send();
    expect(await arrived()).toHaveLength(1);
    expect(await leaks()).toBe(0);
  });

  test("nor is one on what looks like an outer packet of an established flow", async () => {
    const [own, gateway] = [addressOf("client", "ipv6"), addressOf("gateway", "ipv6")];
    // Its sum is that of the client's own address: to conntrack the packet's checksum is right at both.
    const last = "fd00:1::2:0";
    const outer = { port: 5555, source_port: 5555, source: gateway, destination: last, route: own } as const;
    const send = (payload: string) => forge("neighbour", [{ how: "bare", to: own, ...outer, payload }]);
    const arrived = () => seenBy("stranger", 5555);
    await inside("stranger", `ip address add ${last}/64 dev eth0 nodad`);
    await inside("client", "sysctl -qw net.ipv6.conf.all.forwarding=1");
    for (const host of ["client", "stranger"] as const) await inside(host, SEGMENT_ROUTING);
    await listen("stranger", 5555, { address: last });
    await client.remove();
    await send("the control");
    await vi.waitFor(async () => expect(await arrived()).toHaveLength(1), { timeout: 10_000 });
    await client.apply(clientConfig(egress({ gateways: [ADDRESSES.gateway ?? {}] })));
    expect(await ask("client", "tcp", internet)).toBe(gateway);
    await send("forged");
    await ask("client", "tcp", internet);
    expect(await arrived()).toHaveLength(1);
  });
});
