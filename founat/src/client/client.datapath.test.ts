import { type Addresses, FAMILIES, type Family } from "@egress-nat/addresses";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { linkName } from "../iproute/links.ts";
import { clientConfig, egress, gatewayConfig, silent } from "../testing/configs.ts";
import { everywhere, useClientAndGateway } from "../testing/data-path.ts";
import { countingKernel, Interrupted, interruptedKernel } from "../testing/interrupted.ts";
import {
  ADDRESSES,
  type AskOptions,
  addressOf,
  ask,
  chatter,
  fillChecksumsTowards,
  flows,
  forgetLeaks,
  inside,
  kernelOf,
  leaks,
  serve,
} from "../testing/topology.ts";
import { Client } from "./client.ts";
import type { ClientConfig, ClientEgress } from "./config.ts";

const { client, gateway } = useClientAndGateway();

/** What an unprivileged program sees when the guard refuses its packets. */
const REFUSED = { ipv4: "EHOSTUNREACH", ipv6: "EACCES" };

async function everything(): Promise<string> {
  return inside(
    "client",
    `(ip -oneline -details link show type ipip; ip -oneline -details link show type ip6tnl
      ip route show table all; ip -6 route show table all) | sort -k 2
     ip fou show; ip rule; ip -6 rule; nft list ruleset
     sysctl net.ipv4.conf.all.rp_filter net.ipv4.conf.eth0.rp_filter net.core.txrehash`,
  ).then((text) => text.replaceAll(/^\d+: |handle \d+|permaddr \S+|qlen \d+|packets \d+ bytes \d+/gm, ""));
}

test("before there are Egresses the outside sees the client's own address", async () => {
  for (const family of FAMILIES) {
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("client", family));
  }
});

describe("a client of an Egress for everything", () => {
  beforeAll(() => client.apply(everywhere));

  test.each(FAMILIES)("leaves with the gateway's address, TCP and UDP (%s)", async (family) => {
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

  test.each(FAMILIES)("datagrams above the MTU arrive whole, there and back (%s)", async (family) => {
    expect(await ask("client", "udp", addressOf("internet", family), { size: 4000 })).toBe(
      `${addressOf("gateway", family)} 4000`,
    );
  });

  test("in-cluster traffic does not use the gateway, whatever its range", async () => {
    await Promise.all([
      serve("stranger", 9000),
      inside("stranger", "ip address add 100.96.1.1/32 dev lo"),
      inside("router", "ip route add 100.96.1.1/32 via 10.1.0.5"),
    ]);
    const answers = ["10.1.0.5", "fd00:1::5", "100.96.1.1"].map((address) => ask("client", "tcp", address));
    const { ipv4, ipv6 } = ADDRESSES.client ?? {};
    expect(await Promise.all(answers)).toEqual([ipv4, ipv6, ipv4]);
  });

  test.each(FAMILIES)("replies to inbound flows leave as they came (%s)", async (family) => {
    await forgetLeaks();
    await serve("client", 9100);
    for (const protocol of ["tcp", "udp"] as const) {
      const answer = await ask("internet", protocol, addressOf("client", family), { port: 9100 });
      expect(answer).toContain(addressOf("internet", family));
    }
    expect(await leaks()).toBeGreaterThan(0);
  });

  test.each(FAMILIES)("a path of 1400 bytes behind the gateway does not stall TCP (%s)", async (family) => {
    const version = family === "ipv4" ? "" : "-6";
    const route = `${addressOf("internet", family)} dev ext mtu lock 1400`;
    await inside("router", `ip ${version} route add ${route}`);
    expect(await ask("client", "bulk", addressOf("internet", family), { port: 9001, size: 300000 })).toMatch(
      /^300000 bytes/,
    );
    await inside("router", `ip ${version} route del ${route}`);
  });

  describe("DSCP", () => {
    beforeAll(() =>
      inside(
        "internet",
        `nft 'add table inet dscp; add counter inet dscp ipv4; add counter inet dscp ipv6
         add chain inet dscp c { type filter hook input priority 0; }
         add rule inet dscp c ip dscp ef counter name ipv4; add rule inet dscp c ip6 dscp ef counter name ipv6'`,
      ),
    );

    test.each(FAMILIES)("survives the tunnel (%s)", async (family) => {
      await ask("client", "udp", addressOf("internet", family), { tos: 184 });
      expect(await inside("internet", `nft list counter inet dscp ${family}`)).toContain("packets 1");
    });

    afterAll(() => inside("internet", "nft delete table inet dscp"));
  });

  test.each(FAMILIES)("works where the node drops every new flow to the client (%s)", async (family) => {
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

describe("IPv6, where the node translates the outer packets' destination as kube-proxy does", () => {
  const internet = addressOf("internet", "ipv6");
  const badChecksums = async () =>
    Number((await inside("gateway", "grep Udp6InCsumErrors /proc/net/snmp6")).replace(/\D*6\D*/, ""));

  beforeAll(async () => {
    await fillChecksumsTowards("gateway");
    await client.apply(everywhere);
  });

  test("flows pass: outer packets carry no checksum that it could spoil", async () => {
    const before = await badChecksums();
    expect(await ask("client", "tcp", internet)).toBe(addressOf("gateway", "ipv6"));
    expect(await ask("client", "bulk", internet, { port: 9001, size: 100_000 })).toBe("100000 bytes");
    const translated = await flows("router", `dst=${addressOf("service", "ipv6")} `);
    expect(translated.join()).toContain(
      `src=${addressOf("gateway", "ipv6")} dst=${addressOf("client", "ipv6")}`,
    );
    expect(await badChecksums()).toBe(before);
  });
});

describe("what somebody else has changed is seen, and put right", () => {
  const outputOf = (differences: readonly string[]) => differences.join("\n");

  beforeAll(() => client.apply(everywhere));

  test("in the guard and in the links, whatever the comments and names say", async () => {
    const before = await everything();
    // The rule keeps its comment, the links keep their names.
    await inside(
      "client",
      `set -e
       rule=$(nft -a list chain inet egress_nat_client guard | grep 'daddr @guarded4')
       comment=$(echo "$rule" | sed 's/.*comment "\\(.*\\)".*/\\1/')
       nft replace rule inet egress_nat_client guard handle "\${rule##* }" ip daddr @guarded4 accept comment "\\"$comment\\""
       nft 'add chain inet egress_nat_client arrivals { policy drop; }'
       ip link set egress4 type ipip ttl 64
       ip link set egress6 type ip6tnl encap fou encap-sport 5555 encap-dport 5555 encap-udp6-csum`,
    );
    const differences = await client.check(everywhere);
    expect(outputOf(differences)).toContain("nft chain egress_nat_client guard has other rules");
    expect(outputOf(differences)).toContain("nft chain egress_nat_client arrivals is another one");
    expect(outputOf(differences)).toContain("not done: ip link del egress4");
    expect(outputOf(differences)).toContain("not done: ip link del egress6");
    expect(await client.apply(everywhere)).toEqual({ changed: true });
    expect(await client.check(everywhere)).toEqual([]);
    expect(await everything()).toBe(before);
  });

  test("links that an earlier release has named otherwise", async () => {
    const before = await everything();
    await inside(
      "client",
      "for v in 4 6; do ip link set egress$v down; ip link set egress$v name fou$v; ip link set fou$v up; done",
    );
    expect(await client.apply(everywhere)).toEqual({ changed: true });
    expect(await client.check(everywhere)).toEqual([]);
    expect(await everything()).toBe(before);
  });

  test("a guard that is put to sleep", async () => {
    await inside("client", "nft 'add table inet egress_nat_client { flags dormant; }'");
    expect(await client.check(everywhere)).toEqual(["nft table egress_nat_client is another one"]);
    await client.apply(everywhere);
    expect(await client.check(everywhere)).toEqual([]);
  });
});

describe("a probe", () => {
  const { client: addresses = {} } = ADDRESSES;

  beforeAll(() => client.apply(everywhere));

  test("comes back through the tunnel of each family", async () => {
    expect(await client.probe(everywhere, { addresses, timeoutMs: 10_000 })).toEqual([]);
  });

  test("names the tunnel whose packets are dropped between client and gateway, on either way", async () => {
    await inside(
      "router",
      `nft 'add table inet deny; add chain inet deny f { type filter hook forward priority 0; }
       add rule inet deny f ip saddr ${addressOf("gateway", "ipv4")} udp sport 5555 drop
       add rule inet deny f ip6 daddr ${addressOf("gateway", "ipv6")} udp dport 5555 drop'`,
    );
    const reason = "no answer within 1 s";
    expect(await client.probe(everywhere, { addresses, timeoutMs: 1000 })).toEqual([
      { egress: "internet-egress/nat", family: "ipv4", reason },
      { egress: "internet-egress/nat", family: "ipv6", reason },
    ]);
    await inside("router", "nft delete table inet deny");
  });

  test("asks the gateway of each Egress, and nobody where an Egress has none", async () => {
    const ipv4 = egress().gateways[0]?.ipv4;
    const narrow = egress({
      name: "b/narrow",
      destinations: ["192.168.10.0/24", "fd99::/64"],
      sourcePortAuto: true,
    });
    const nobody = egress({
      name: "c/nobody",
      destinations: ["203.0.113.0/24"],
      gateways: [{ ...(ipv4 && { ipv4: addressOf("stranger", "ipv4") }) }],
    });
    const config = clientConfig(egress({ gateways: [{ ...(ipv4 && { ipv4 }) }] }), narrow, nobody);
    await client.apply(config);
    expect(await client.probe(config, { addresses, timeoutMs: 4000 })).toEqual([
      { egress: "c/nobody", family: "ipv4", reason: "no answer within 4 s" },
    ]);
  });
});

describe("fail closed", () => {
  beforeAll(async () => {
    await client.apply(everywhere);
    await forgetLeaks();
  });

  test.each(FAMILIES)("a socket bound to the uplink sends nothing around the tunnel (%s)", async (family) => {
    const internet = addressOf("internet", family);
    expect(await ask("client", "udp", internet, { device: "eth0" })).toBe("EPERM");
    // To such a TCP socket the kernel reports ICMP errors of IPv4 only.
    expect(await ask("client", "tcp", internet, { device: "eth0", timeout: 2 })).toBe(
      family === "ipv4" ? REFUSED.ipv4 : "timeout",
    );
    expect(await leaks()).toBe(0);
  });

  test.each([
    ["down", "set $link down"],
    ["deleted", "del $link"],
  ])("with the tunnel's links %s nothing leaves; the next apply repairs them", async (_, command) => {
    await inside(
      "client",
      `for link in $(ip -brief link | grep -o "^fou[^@ ]*"); do ip link ${command}; done`,
    );
    const answers = (protocol: "tcp" | "udp", options?: AskOptions) =>
      Promise.all(FAMILIES.map((family) => ask("client", protocol, addressOf("internet", family), options)));
    for (const answer of await answers("tcp")) expect(answer).toMatch(/EHOSTUNREACH|EACCES/);
    expect(await answers("udp", { device: "eth0" })).toEqual(["EPERM", "EPERM"]);
    expect(await leaks()).toBe(0);
    expect(await client.check(everywhere)).not.toEqual([]);
    expect(await client.apply(everywhere)).toEqual({ changed: true });
    expect(await answers("tcp")).toEqual(FAMILIES.map((family) => addressOf("gateway", family)));
  });

  test.each(FAMILIES)(
    "without a gateway address of its family a flow is refused at once (%s)",
    async (family) => {
      const { [family]: _, ...other }: Addresses = egress().gateways[0] ?? {};
      await client.apply(clientConfig(egress({ gateways: [other] })));
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(REFUSED[family]);
      expect(await ask("client", "udp", addressOf("internet", family), { device: "eth0" })).toBe("EPERM");
      expect(await leaks()).toBe(0);
    },
  );

  test.each(["apply", "setUp"] as const)(
    "%s: where it is killed again and again nothing leaves, and it ends in the same state",
    async (way) => {
      await client.remove();
      await client.apply(everywhere);
      const wanted = await everything();
      await client.remove();
      const addresses = FAMILIES.map((family) => addressOf("internet", family));
      let stopChatter: (() => Promise<void>) | undefined;
      for (let done = false; !done; ) {
        const killed = new Client({ kernel: interruptedKernel(kernelOf("client"), 4), logger: silent });
        done = await killed[way](everywhere).then(
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
    },
  );
});

describe("the set-up of a client", () => {
  test("ends where an apply does: all that is looked at later is as it should be", async () => {
    await client.remove();
    await client.apply(everywhere);
    const wanted = await everything();
    await client.remove();
    await client.setUp(everywhere);
    expect(await everything()).toBe(wanted);
    expect(await client.apply(everywhere)).toEqual({ changed: false });
  });

  test("where there is a client already, of another Egress, leaves nothing of it", async () => {
    const wanted = await everything();
    await client.apply(
      clientConfig(egress({ name: "b/narrow", destinations: ["192.168.10.0/24", "fd99::/64"] })),
    );
    await client.setUp(everywhere);
    expect(await everything()).toBe(wanted);
    expect(await client.check(everywhere)).toEqual([]);
  });

  test("without its uplink says so", async () => {
    await client.remove();
    const lost = { ...everywhere, uplink: "net1" };
    await expect(client.setUp(lost)).rejects.toMatchObject({ code: "uplink-missing" });
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
    const sent = async (family: Family, sourcePortAuto: boolean) => {
      const link = linkName({ family, sourcePortAuto, remote: addressOf("service", family) });
      return Number(
        (
          await inside(
            "client",
            `ip -json -stats link show ${link} | grep -o '"tx":{"bytes":[0-9]*,"packets":[0-9]*' | grep -o "[0-9]*$"`,
          )
        ).trim(),
      );
    };
    for (const family of FAMILIES) {
      const before = await sent(family, true);
      expect(await ask("client", "tcp", addressOf("narrow", family))).toBe(addressOf("gateway", family));
      expect(await sent(family, true)).toBeGreaterThan(before);
      const beforeWide = await sent(family, false);
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
      expect(await sent(family, false)).toBeGreaterThan(beforeWide);
    }
  });

  test("private destinations of no narrow Egress go where they went before", async () => {
    await client.apply(clientConfig(wide));
    for (const family of FAMILIES) {
      expect(await ask("client", "tcp", addressOf("narrow", family))).toBe(addressOf("client", family));
    }
  });
});

describe("live changes", () => {
  async function talkWhile(config: ClientConfig): Promise<Set<string>> {
    const talks = FAMILIES.map((family) =>
      ask("client", "tcp", addressOf("internet", family), { times: 20, pause: 0.2 }),
    );
    await client.apply(config);
    return new Set((await Promise.all(talks)).flatMap((talk) => talk.split("\n")));
  }

  test("flows live on when other destinations come and go", async () => {
    const internet = FAMILIES.map((family) => addressOf("internet", family));
    const steps: readonly Partial<ClientEgress>[] = [
      { destinations: internet },
      { destinations: [...internet, "203.0.113.0/24", "2001:db8:9::/48"] },
      {},
      { excluded: ["198.51.100.0/24", "2001:db8:8::/48"] },
    ];
    await client.apply(everywhere);
    for (const change of steps) {
      expect(await talkWhile(clientConfig(egress(change)))).toEqual(
        new Set(FAMILIES.map((family) => addressOf("gateway", family))),
      );
    }
  });

  test("an excluded destination leaves with the client's own address", async () => {
    const excluded = FAMILIES.map((family) => addressOf("internet", family));
    await client.apply(clientConfig(egress({ excluded })));
    for (const family of FAMILIES) {
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("client", family));
    }
  });
});

test("remove leaves nothing behind, once the interface is gone that it may have to wait for", async () => {
  await client.apply(everywhere);
  expect(await client.remove("eth0")).toBe(false);
  expect(await client.check(everywhere)).toEqual([]);
  expect(await client.remove("eth1")).toBe(true);
  const left = await everything();
  expect(left).not.toMatch(/fou|egress[46]|lookup 1(1[6-9]|20)|table 1(1[6-9]|20)|proto 30|egress_nat/);
  for (const family of FAMILIES) {
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("client", family));
  }
});
