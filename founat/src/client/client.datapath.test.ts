import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Family } from "../family.ts";
import { Gateway } from "../gateway/gateway.ts";
import { prepareGatewayNetns } from "../gateway/netns.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import { countingKernel, Interrupted, interruptedKernel } from "../testing/interrupted.ts";
import {
  addressOf,
  ask,
  buildTopology,
  chatter,
  destroyTopology,
  forgetLeaks,
  inside,
  kernelOf,
  leaks,
  serve,
} from "../testing/topology.ts";
import { Client } from "./client.ts";
import type { ClientConfig, ClientEgress } from "./config.ts";

const client = new Client({ kernel: kernelOf("client"), logger: silent });
const gateway = new Gateway(gatewayConfig(), { kernel: kernelOf("gateway"), logger: silent });
const everywhere = clientConfig(egress());
const families: readonly Family[] = ["ipv4", "ipv6"];

/** What an unprivileged program sees when the guard refuses its packets. */
const REFUSED = { ipv4: "EHOSTUNREACH", ipv6: "EACCES" };

beforeAll(async () => {
  await buildTopology();
  await prepareGatewayNetns(kernelOf("gateway"));
  await gateway.init();
  await gateway.sync([gatewayClient("client")]);
});

afterAll(destroyTopology);

async function everything(): Promise<string> {
  return inside(
    "client",
    `ip -details link show type ipip; ip -details link show type ip6tnl; ip fou show
     ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; nft list ruleset
     sysctl net.ipv4.conf.all.rp_filter net.ipv4.conf.eth0.rp_filter net.core.txrehash`,
  ).then((text) => text.replaceAll(/^\d+: |handle \d+|permaddr \S+|qlen \d+/gm, ""));
}

test("before there are Egresses the outside sees the client's own address", async () => {
  for (const family of families) {
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("client", family));
  }
});

describe("a client of an Egress for everything", () => {
  beforeAll(() => client.apply(everywhere));

  test.each(families)("leaves with the gateway's address, TCP and UDP (%s)", async (family) => {
    const internet = addressOf("internet", family);
    expect(await ask("client", "tcp", internet)).toBe(addressOf("gateway", family));
    expect(await ask("client", "udp", internet)).toBe(`${addressOf("gateway", family)} 5`);
  });

  test("a second apply writes nothing, and check finds no difference", async () => {
    const kernel = countingKernel(kernelOf("client"));
    const again = new Client({ kernel, logger: silent });
    expect(await again.apply(everywhere)).toEqual({ changed: false });
    expect(kernel.writes()).toBe(0);
    expect(await again.check(everywhere)).toEqual([]);
  });

  test.each(families)("datagrams above the MTU arrive whole, there and back (%s)", async (family) => {
    expect(await ask("client", "udp", addressOf("internet", family), "--size 4000")).toBe(
      `${addressOf("gateway", family)} 4000`,
    );
  });

  test("in-cluster traffic does not use the gateway, whatever its range", async () => {
    await serve("stranger", 9000);
    await inside("stranger", "ip address add 100.96.1.1/32 dev lo");
    await inside("router", "ip route add 100.96.1.1/32 via 10.1.0.5");
    for (const address of ["10.1.0.5", "fd00:1::5", "100.96.1.1"]) {
      const family = address.includes(":") ? "ipv6" : "ipv4";
      expect(await ask("client", "tcp", address)).toBe(addressOf("client", family));
    }
  });

  test.each(families)("replies to inbound flows leave as they came (%s)", async (family) => {
    await forgetLeaks();
    const stop = await serve("client", 9100);
    for (const protocol of ["tcp", "udp"] as const) {
      const answer = await ask("internet", protocol, addressOf("client", family), "--port 9100");
      expect(answer).toContain(addressOf("internet", family));
    }
    expect(await leaks()).toBeGreaterThan(0);
    await stop();
  });

  test.each(families)("a path of 1400 bytes behind the gateway does not stall TCP (%s)", async (family) => {
    const version = family === "ipv4" ? "" : "-6";
    const route = `${addressOf("internet", family)} dev ext mtu lock 1400`;
    await inside("router", `ip ${version} route add ${route}`);
    expect(await ask("client", "bulk", addressOf("internet", family), "--port 9001 --size 300000")).toMatch(
      /^300000 bytes/,
    );
    await inside("router", `ip ${version} route del ${route}`);
  });

  test.each(families)("DSCP survives the tunnel, and shows on the outer packet (%s)", async (family) => {
    const ip = family === "ipv4" ? "ip" : "ip6";
    await inside(
      "internet",
      `nft 'add table inet dscp; add counter inet dscp inner; add chain inet dscp c { type filter hook input priority 0; }
       add rule inet dscp c ${ip} dscp ef counter name inner'`,
    );
    await inside(
      "gateway",
      `nft 'add table inet dscp; add counter inet dscp outer; add chain inet dscp c { type filter hook input priority -10; }
       add rule inet dscp c udp dport 5555 ${ip} dscp ef counter name outer'`,
    );
    await ask("client", "udp", addressOf("internet", family), "--tos 184");
    expect(await inside("internet", "nft list counter inet dscp inner")).toContain("packets 1");
    expect(await inside("gateway", "nft list counter inet dscp outer")).toContain("packets 1");
    await inside("internet", "nft delete table inet dscp");
    await inside("gateway", "nft delete table inet dscp");
  });

  test.each(families)("works where the node drops every new flow to the client (%s)", async (family) => {
    const ip = family === "ipv4" ? "ip" : "ip6";
    await inside(
      "router",
      `nft 'add table inet deny; add chain inet deny f { type filter hook forward priority 0; }
       add rule inet deny f ${ip} daddr ${addressOf("client", family)} ct state established,related accept
       add rule inet deny f ${ip} daddr ${addressOf("client", family)} meta l4proto { tcp, udp } drop'`,
    );
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
    await inside("router", "nft delete table inet deny");
  });
});

describe("fail closed", () => {
  beforeAll(async () => {
    await client.apply(everywhere);
    await forgetLeaks();
  });

  test.each(families)("a socket bound to the uplink sends nothing around the tunnel (%s)", async (family) => {
    const internet = addressOf("internet", family);
    expect(await ask("client", "udp", internet, "--device eth0")).toBe("EPERM");
    // To such a TCP socket the kernel reports ICMP errors of IPv4 only.
    expect(await ask("client", "tcp", internet, "--device eth0 --timeout 2")).toBe(
      family === "ipv4" ? REFUSED.ipv4 : "timeout",
    );
    expect(await leaks()).toBe(0);
  });

  test.each([
    ["down", "ip link set fou4 down; ip link set fou6 down"],
    ["deleted", "ip link del fou4; ip link del fou6"],
  ])("with the tunnel's links %s nothing leaves; the next apply repairs them", async (_, command) => {
    await inside("client", command);
    for (const family of families) {
      expect(await ask("client", "tcp", addressOf("internet", family))).toMatch(/EHOSTUNREACH|EACCES/);
      expect(await ask("client", "udp", addressOf("internet", family), "--device eth0")).toBe("EPERM");
    }
    expect(await leaks()).toBe(0);
    expect(await client.check(everywhere)).not.toEqual([]);
    expect(await client.apply(everywhere)).toEqual({ changed: true });
    for (const family of families) {
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
    }
  });

  test.each(families)(
    "without a gateway address of its family a flow is refused at once (%s)",
    async (family) => {
      const { [family]: _, ...other } = egress().gateway;
      await client.apply(clientConfig(egress({ gateway: other })));
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(REFUSED[family]);
      expect(await ask("client", "udp", addressOf("internet", family), "--device eth0")).toBe("EPERM");
      expect(await leaks()).toBe(0);
    },
  );

  test("at every line of an apply that is killed again and again nothing leaves, and it ends in the same state", async () => {
    await client.remove();
    await client.apply(everywhere);
    const wanted = await everything();
    await client.remove();
    const addresses = families.map((family) => addressOf("internet", family));
    let stopChatter: (() => Promise<void>) | undefined;
    for (let done = false; !done; ) {
      const killed = new Client({ kernel: interruptedKernel(kernelOf("client"), 4), logger: silent });
      done = await killed.apply(everywhere).then(
        () => true,
        (error) => {
          expect(error).toBeInstanceOf(Interrupted);
          return false;
        },
      );
      // The guard is there from the first command on.
      stopChatter ??= await forgetLeaks().then(() => chatter(addresses));
    }
    await stopChatter?.();
    expect(await leaks()).toBe(0);
    expect(await everything()).toBe(wanted);
  });
});

describe("several Egresses", () => {
  const wide = egress({ name: "a/wide" });
  const narrow = egress({
    name: "b/narrow",
    destinations: ["192.168.10.0/24", "fd99::/64"],
    sourcePortAuto: true,
  });

  test("each destination uses its Egress's link: a fixed and an automatic source port side by side", async () => {
    await gateway.configure(gatewayConfig({ destinations: ["0.0.0.0/0", "::/0", ...narrow.destinations] }));
    await client.apply(clientConfig(wide, narrow));
    const sent = async (link: string) =>
      Number((await inside("client", `cat /sys/class/net/${link}/statistics/tx_packets`)).trim());
    for (const family of families) {
      const v = family === "ipv4" ? "4" : "6";
      const before = await sent(`fou${v}a`);
      expect(await ask("client", "tcp", addressOf("narrow", family))).toBe(addressOf("gateway", family));
      expect(await sent(`fou${v}a`)).toBeGreaterThan(before);
      const beforeWide = await sent(`fou${v}`);
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
      expect(await sent(`fou${v}`)).toBeGreaterThan(beforeWide);
    }
  });

  test("private destinations of no narrow Egress go where they went before", async () => {
    await client.apply(clientConfig(wide));
    for (const family of families) {
      expect(await ask("client", "tcp", addressOf("narrow", family))).toBe(addressOf("client", family));
    }
  });
});

describe("live changes", () => {
  async function talkWhile(config: ClientConfig, family: Family): Promise<Set<string>> {
    const talk = ask("client", "tcp", addressOf("internet", family), "--times 20 --pause 0.2");
    await client.apply(config);
    return new Set((await talk).split("\n"));
  }

  test.each(families)("flows live on when other destinations come and go (%s)", async (family) => {
    const internet = `${addressOf("internet", family)}/${family === "ipv4" ? 32 : 128}`;
    const steps: readonly Partial<ClientEgress>[] = [
      { destinations: [internet] },
      { destinations: [internet, "203.0.113.0/24", "2001:db8:9::/48"] },
      {},
      { excluded: ["198.51.100.0/24", "2001:db8:8::/48"] },
    ];
    await client.apply(everywhere);
    for (const change of steps) {
      expect(await talkWhile(clientConfig(egress(change)), family)).toEqual(
        new Set([addressOf("gateway", family)]),
      );
    }
  });

  test("an excluded destination leaves with the client's own address", async () => {
    const excluded = families.map((family) => addressOf("internet", family));
    await client.apply(clientConfig(egress({ excluded })));
    for (const family of families) {
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("client", family));
    }
  });
});

test("remove leaves nothing behind", async () => {
  await client.apply(everywhere);
  await client.remove();
  const left = await everything();
  expect(left).not.toMatch(/fou|lookup 11[78]|table 11[78]|proto 30|egress_nat/);
  for (const family of families) {
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("client", family));
  }
});
