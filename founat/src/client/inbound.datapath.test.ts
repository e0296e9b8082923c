import { FAMILIES, type Family } from "@egress-nat/addresses";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { clientConfig, egress } from "../testing/configs.ts";
import { everywhere, useClientAndGateway } from "../testing/data-path.ts";
import {
  addressOf,
  ask,
  flows,
  forge,
  forgetLeaks,
  inside,
  leaks,
  listen,
  refused,
  seenBy,
  serve,
} from "../testing/topology.ts";

const { client } = useClientAndGateway();

/** Of servers in the client, and of sockets that it opens later. */
const SERVED = 9100;
const LATER = 40_000;
const [SYN, ACK] = [0x02, 0x10];
/** RFC 2385: the kernel does not answer with a reset to a segment that is signed so, for a port that knows no key. */
const SIGNED = `01011312${"00".repeat(16)}`;

beforeAll(async () => {
  await serve("client", SERVED);
});

beforeEach(async () => {
  await inside("client", "conntrack -F 2>/dev/null");
  await forgetLeaks();
});

/** A packet to the client that says it is of the internet's server; a neighbour on the bridge made it. */
function pretend(
  family: Family,
  packet: { port: number; source_port?: number; tcp_flags?: number; tcp_options?: string },
) {
  const [source, own] = [addressOf("internet", family), addressOf("client", family)];
  const whole = { to: own, source, destination: own, source_port: 9000, payload: "forged" };
  return forge("neighbour", [{ how: "bare", ...whole, ...packet }]);
}

describe.each(FAMILIES)("a forged packet that nobody listens for (%s)", (family) => {
  const internet = addressOf("internet", family);

  beforeAll(() => client.apply(everywhere));

  test("decides nothing: the next socket on its port uses the gateway", async () => {
    await pretend(family, { port: LATER });
    const answer = await ask("client", "udp", internet, { source_port: LATER });
    expect(answer).toBe(`${addressOf("gateway", family)} 5`);
    expect(await leaks()).toBe(0);
  });

  test("is counted", async () => {
    const before = await refused("unheard");
    await pretend(family, { port: LATER - 1 });
    await vi.waitFor(async () => expect(await refused("unheard")).toBe(before + 1), { timeout: 10_000 });
  });

  test.each([
    ["SYN", SYN],
    ["ACK", ACK],
    ["SYN and ACK", SYN | ACK],
    ["SYN and a signature", SYN, SIGNED],
    ["ACK and a signature", ACK, SIGNED],
  ])("nor does a TCP segment with %s", async (_, tcp_flags, tcp_options = "") => {
    const port = LATER + tcp_flags + tcp_options.length;
    await pretend(family, { port, tcp_flags, tcp_options });
    const answer = await ask("client", "tcp", internet, { source_port: port, timeout: 5 });
    expect(answer).toBe(addressOf("gateway", family));
  });

  test("nor does one to a socket whose connection conntrack does not know any more", async () => {
    const port = LATER + 100;
    const answers = ask("client", "tcp", internet, { source_port: port, times: 2, pause: 6 });
    await vi.waitFor(async () => expect(await flows("client", `sport=${port} `)).not.toEqual([]), {
      timeout: 10_000,
    });
    await inside("client", "sleep 2; conntrack -F 2>/dev/null");
    await pretend(family, { port, tcp_flags: ACK });
    await forgetLeaks();
    expect(await answers).toBe(`${addressOf("gateway", family)}\n${addressOf("gateway", family)}`);
    expect(await leaks()).toBe(0);
  });

  test("nor does an echo request: the client's own ones use the gateway", async () => {
    const ping = (namespace: "client" | "internet", address: string) =>
      inside(namespace, `ping -q -n -e 4711 -c 1 -w 10 ${address}`);
    await ping("internet", addressOf("client", family));
    await forgetLeaks();
    expect(await ping("client", internet)).toContain("1 received");
    expect(await leaks()).toBe(0);
  });

  test("where a server listens it is answered as it came: the attack as it is works", async () => {
    await pretend(family, { port: SERVED, source_port: 7001 });
    await vi.waitFor(async () => expect(await leaks()).toBe(1), { timeout: 10_000 });
  });

  test("with originatingOnly: false not even that leaves around the gateway", async () => {
    await client.apply(clientConfig(egress({ originatingOnly: false })));
    const before = (await seenBy("client", SERVED)).length;
    await pretend(family, { port: SERVED, source_port: 7001 });
    await vi.waitFor(async () => expect(await seenBy("client", SERVED)).toHaveLength(before + 1));
    await vi.waitFor(
      async () => expect(await flows("gateway", `src=${addressOf("client", family)} `)).not.toEqual([]),
      { timeout: 10_000 },
    );
    expect(await leaks()).toBe(0);
  });
});

describe.each(FAMILIES)("who listens is answered (%s)", (family) => {
  const internet = addressOf("internet", family);
  const own = addressOf("client", family);
  const any = family === "ipv4" ? "0.0.0.0" : "::";

  beforeAll(() => client.apply(everywhere));

  test.each([
    ["on any address", 9200, { address: any }],
    ["on the client's own", 9201, { address: own }],
    ["for one peer", 9202, { address: own, peer: [internet, 7000] as const }],
  ])("a socket %s", async (_, port, options) => {
    await listen("client", port + (family === "ipv4" ? 0 : 10), options);
    const question = { port: port + (family === "ipv4" ? 0 : 10), source_port: 7000 };
    expect(await ask("internet", "udp", own, question)).toBe("hello");
  });

  test("a closed TCP port is refused at once", async () => {
    expect(await ask("internet", "tcp", own, { port: 9999, timeout: 10 })).toBe("ECONNREFUSED");
  });

  test("a neighbour in the cluster is told of a closed UDP port", async () => {
    expect(await ask("neighbour", "udp", own, { port: 9999, timeout: 10 })).toBe("ECONNREFUSED");
  });

  test("in a multicast group", async () => {
    const group = family === "ipv4" ? "239.1.2.3" : "ff05::123";
    const port = family === "ipv4" ? 9301 : 9302;
    await listen("client", port, { address: any, group });
    const packet = {
      how: "bare",
      to: group,
      source: internet,
      destination: group,
      payload: "to all",
    } as const;
    await forge("neighbour", [{ ...packet, port }]);
    await vi.waitFor(async () => expect(await seenBy("client", port)).toHaveLength(1), { timeout: 10_000 });
  });

  test("by a port of the node", async () => {
    const ip = family === "ipv4" ? "ip" : "ip6";
    const router = family === "ipv4" ? "192.0.2.1" : "2001:db8::1";
    const to = family === "ipv4" ? `${own}:${SERVED}` : `[${own}]:${SERVED}`;
    await inside(
      "router",
      `nft 'add table inet hostport
       add chain inet hostport p { type nat hook prerouting priority dstnat; }
       add rule inet hostport p ${ip} daddr ${router} meta l4proto { tcp, udp } th dport 8080 dnat ${ip} to ${to}'`,
    );
    expect(await ask("internet", "tcp", router, { port: 8080 })).toBe(internet);
    expect(await ask("internet", "udp", router, { port: 8080 })).toBe(`${internet} 5`);
    await inside("router", "nft delete table inet hostport");
  });
});

describe("a container within the client", () => {
  beforeAll(async () => {
    await client.apply(everywhere);
    await inside(
      "client",
      `set -e
       ip netns del stranger; ip netns add stranger
       ip link add docker0 type veth peer name eth0 netns stranger
       ip address add 172.17.0.1/24 dev docker0; ip address add fd17::1/64 dev docker0 nodad
       ip link set docker0 up
       ip -n stranger address add 172.17.0.2/24 dev eth0; ip -n stranger address add fd17::2/64 dev eth0 nodad
       ip -n stranger link set lo up; ip -n stranger link set eth0 up
       ip -n stranger route add default via 172.17.0.1; ip -n stranger route add default via fd17::1
       sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
       nft 'add table inet docker
       add chain inet docker p { type nat hook prerouting priority dstnat; }
       add rule inet docker p iifname eth0 ip protocol { tcp, udp } th dport 8081 dnat ip to 172.17.0.2:9000
       add rule inet docker p iifname eth0 ip6 nexthdr { tcp, udp } th dport 8081 dnat ip6 to [fd17::2]:9000
       add chain inet docker o { type nat hook postrouting priority srcnat; }
       add rule inet docker o ip saddr 172.17.0.2 oifname != docker0 masquerade
       add rule inet docker o ip6 saddr fd17::2 oifname != docker0 masquerade'`,
    );
    await serve("stranger", 9000);
  });

  test.each(FAMILIES)("answers on a port that it publishes (%s)", async (family) => {
    const [own, internet] = [addressOf("client", family), addressOf("internet", family)];
    expect(await ask("internet", "tcp", own, { port: 8081 })).toBe(internet);
    expect(await ask("internet", "udp", own, { port: 8081 })).toBe(`${internet} 5`);
  });

  test.each(FAMILIES)("uses the gateway (%s)", async (family) => {
    const answer = await ask("stranger", "udp", addressOf("internet", family));
    expect(answer).toBe(`${addressOf("gateway", family)} 5`);
    expect(await leaks()).toBe(0);
  });

  test.each(FAMILIES)("is answered on a flow to which NAT gave the tunnel's port (%s)", async (family) => {
    const port = family === "ipv4" ? 9401 : 9411;
    await serve("neighbour", port);
    await inside(
      "client",
      `nft 'add chain inet docker pinned { type nat hook postrouting priority srcnat - 1; }
       add rule inet docker pinned oifname eth0 udp dport ${port} masquerade to :5555'`,
    );
    const answer = await ask("stranger", "udp", addressOf("neighbour", family), { port });
    expect(answer).toBe(`${addressOf("client", family)} 5`);
  });
});
