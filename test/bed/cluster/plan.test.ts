import { containsPrefix, type Prefix, parseCidr } from "@egress-nat/addresses";
import { isNarrow } from "@egress-nat/founat";
import { describe, expect, test } from "vitest";
import { clusterSide, internetRules, internetSide, podRoutes } from "./network.ts";
import { type ClusterOptions, planCluster } from "./plan.ts";

const OPTIONS: ClusterOptions = {
  name: "demo",
  nodes: 2,
  ranges: "private",
  proxyMode: "nftables",
  kubernetes: "newest",
  lifetime: "detached",
};

describe("a cluster's plan", () => {
  test.each(["private", "mixed"] as const)(
    "gives the DNS Service addresses of the Service ranges (%s)",
    (ranges) => {
      const { dnsServiceIPs, serviceCidrs } = planCluster({ ...OPTIONS, ranges });
      for (const [index, address] of dnsServiceIPs.entries()) {
        const [range, one] = [serviceCidrs[index] as string, address].map(parseCidr) as [Prefix, Prefix];
        expect(containsPrefix(range, one)).toBe(true);
      }
    },
  );

  test("has pods and Services outside the private ranges on demand", () => {
    const { podCidrs, serviceCidrs } = planCluster({ ...OPTIONS, ranges: "mixed" });
    for (const cidr of [...podCidrs, ...serviceCidrs]) {
      expect(isNarrow(cidr, [])).toBe(false);
    }
  });

  test("gives every node addresses, a tap, a card and a port of its own", () => {
    const { nodes } = planCluster({ ...OPTIONS, nodes: 3 });
    for (const key of ["name", "ipv4", "ipv6", "tap", "mac", "execPort"] as const) {
      expect(new Set(nodes.map((node) => node[key])).size).toBe(3);
    }
  });

  test("keeps clusters apart by their names", () => {
    const [one, other] = [planCluster(OPTIONS), planCluster({ ...OPTIONS, name: "other" })];
    expect(one.netns).not.toBe(other.netns);
    expect(one.internet.netns).not.toBe(other.internet.netns);
    expect(one.folder).not.toBe(other.folder);
  });

  test("refuses a name that no namespace can have", () => {
    expect(() => planCluster({ ...OPTIONS, name: "../etc" })).toThrow("a cluster's name is at most 20 of");
  });

  test("refuses more nodes than it has addresses for", () => {
    expect(() => planCluster({ ...OPTIONS, nodes: 4 })).toThrow("nodes");
  });
});

describe("a cluster's network", () => {
  const plan = planCluster(OPTIONS);

  test("has names that Linux takes for interfaces", () => {
    const names = [...clusterSide(plan), ...internetSide(plan)].flatMap((command) =>
      [...command.matchAll(/(?:link add|link set|name|dev|tuntap add) (\S+)/g)].map(
        (match) => match[1] ?? "",
      ),
    );
    expect(names.filter((name) => name.length > 15)).toEqual([]);
  });

  test("leads to each of the internet's addresses over its leg, and back over the same", () => {
    const there = clusterSide(plan).filter((command) => command.includes(plan.internet.lowMtu.ipv4));
    expect(there).toEqual(["route add 198.51.100.10 via 172.31.1.2"]);
    expect(internetRules(plan, "ipv4")).toContain("rule add from 198.51.100.10 lookup 101");
    expect(internetSide(plan)).toContain("route add default via 172.31.1.1 table 101");
  });

  test("leads to a node's pods by way of the node, in both families", () => {
    expect(
      podRoutes({ ipv4: "172.30.0.11", ipv6: "fd00::11" }, ["10.244.0.0/24", "fd00:10:244::/64"]),
    ).toEqual(["route replace 10.244.0.0/24 via 172.30.0.11", "route replace fd00:10:244::/64 via fd00::11"]);
  });
});
