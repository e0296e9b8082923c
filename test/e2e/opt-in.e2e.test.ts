import { FOU_PORT } from "@egress-nat/crds";
import { beforeAll, expect, test } from "vitest";
import type { PlacedPod } from "../bed/workload/gateways.ts";
import { type CraftedPacket, type ProbePod, WHOAMI_PORT } from "../bed/workload/probe-pod.ts";
import { Ear, lateArrivals, uniqueText } from "./kit/evidence.ts";
import { addressesOf, asItself, type BothFamilies } from "./kit/internet.ts";
import { INTERNET_EGRESS } from "./kit/names.ts";
import { describeOnline, gatewaysOf, player, serviceOf } from "./kit/world.ts";

const LOCAL_PORT = 7777;

describeOnline("opting in", (internet) => {
  const targets = [internet.wide, internet.narrow, internet.lowMtu];
  let alice: ProbePod;
  let bob: ProbePod;
  let mallory: ProbePod;
  let gateways: readonly PlacedPod[];
  let service: BothFamilies;

  beforeAll(async () => {
    [alice, bob, mallory, gateways, service] = await Promise.all([
      player("alice"),
      player("bob"),
      player("mallory"),
      gatewaysOf(INTERNET_EGRESS),
      serviceOf(INTERNET_EGRESS),
    ]);
  });

  test("clients on every node reach the internet with the address of a gateway", async () => {
    for (const client of [alice, bob]) {
      const [v4, v6] = await client.seenBy(addressesOf(internet.wide));
      expect(gateways.map(({ ipv4 }) => ipv4)).toContain(v4?.tcp);
      expect(gateways.map(({ ipv6 }) => ipv6)).toContain(v6?.tcp);
      expect({ v4: v4?.udp, v6: v6?.udp }).toEqual({ v4: v4?.tcp, v6: v6?.tcp });
    }
  });

  test("a pod without the annotation reaches the internet with its own address", async () => {
    const seen = await mallory.seenBy(addressesOf(...targets));
    expect(seen).toEqual(targets.flatMap(() => asItself(mallory)));
  });

  test("links, routes and a FoU port made by hand get a pod nothing through the gateway", async () => {
    // To each a way of its own: what is lost takes seconds to be missed.
    const ways = [service, ...gateways];
    expect(ways.length).toBeLessThanOrEqual(targets.length);
    const tunnels = ways.flatMap((gateway, index) => {
      const target = targets[index];
      return target === undefined ? [] : [{ gateway, target, index }];
    });
    await mallory.run(
      "bash",
      "-ec",
      handMadePorts() + tunnels.map((each) => handMadeTunnel(mallory, each)).join(""),
    );
    try {
      const reached = await mallory.seenBy(addressesOf(...tunnels.map(({ target }) => target)));
      expect(reached).toEqual(reached.map(() => ({ tcp: "timeout", udp: "timeout" })));
    } finally {
      const links = tunnels
        .map(({ index }) => `ip link del fou4-${index}; ip link del fou6-${index};`)
        .join(" ");
      await mallory.run(
        "bash",
        "-c",
        `${links} ip fou del port ${FOU_PORT}; ip fou del port ${FOU_PORT} -6; true`,
      );
    }
  });

  test("packets that a pod wraps itself, in UDP or bare, come out of no gateway", async () => {
    const text = uniqueText("wrapped");
    await mallory.ask(
      [service, ...gateways].flatMap((via) =>
        [mallory, alice].flatMap((source) => wrapped(via, source, internet.wide, WHOAMI_PORT, text)),
      ),
    );
    await lateArrivals(mallory, internet);
    expect(await internet.sendersOf(text)).toEqual([]);
  });

  test("a client relays nothing, and hands nothing to its own sockets, that another pod wraps for it", async () => {
    const text = uniqueText("relay");
    const ear = await Ear.open(alice, LOCAL_PORT);
    const sources = [mallory, alice, bob, internet.wide];
    await mallory.ask(
      sources.flatMap((source) => [
        ...wrapped(alice, source, internet.wide, WHOAMI_PORT, text),
        ...wrapped(alice, source, alice, LOCAL_PORT, text),
      ]),
    );
    await lateArrivals(mallory, internet);
    expect(await internet.sendersOf(text)).toEqual([]);
    await ear.hears(mallory);
    expect(await ear.sendersOf(text)).toEqual([]);
  });

  test("a packet with a foreign source does not reach a client by way of a gateway", async () => {
    const neighbour = gateways.find(({ node }) => node === mallory.node);
    // With one gateway on each node there is one on the same bridge as mallory.
    expect(neighbour).toBeDefined();
    const text = uniqueText("foreign");
    const ear = await Ear.open(alice, LOCAL_PORT);
    const routes = [`${alice.ipv4}/32 via ${neighbour?.ipv4}`, `${alice.ipv6}/128 via ${neighbour?.ipv6}`];
    await mallory.run(
      "bash",
      "-ec",
      routes.map((route) => `ip route replace ${route} dev eth0 onlink`).join("; "),
    );
    try {
      await mallory.ask([
        { do: "forged", source: internet.wide.ipv4, destination: alice.ipv4, port: LOCAL_PORT, text },
        { do: "forged", source: internet.wide.ipv6, destination: alice.ipv6, port: LOCAL_PORT, text },
      ]);
      await lateArrivals(mallory, internet);
    } finally {
      await mallory.run("bash", "-ec", routes.map((route) => `ip route del ${route} dev eth0`).join("; "));
    }
    await ear.hears(mallory);
    expect(await ear.sendersOf(text)).toEqual([]);
  });
});

/** The packet in FoU, IPIP and IP6IP6. */
function wrapped(
  via: BothFamilies,
  source: BothFamilies,
  destination: BothFamilies,
  port: number,
  text: string,
): CraftedPacket[] {
  return (["ipv4", "ipv6"] as const).flatMap((family) => {
    const packet = {
      via: via[family],
      source: source[family],
      destination: destination[family],
      port,
      text,
    };
    return [
      { do: "fou" as const, ...packet },
      { do: "ip_in_ip" as const, ...packet },
    ];
  });
}

interface HandMade {
  readonly gateway: BothFamilies;
  readonly target: BothFamilies;
  readonly index: number;
}

/** What a client's network namespace holds, as far as a pod can make it itself: the ports that all tunnels share. */
function handMadePorts(): string {
  return `
    ip fou add port ${FOU_PORT} ipproto 4
    ip fou add port ${FOU_PORT} ipproto 41 -6`;
}

/** And the links to one gateway, with the routes to one target. */
function handMadeTunnel(pod: BothFamilies, { gateway, target, index }: HandMade): string {
  const encapsulation = `encap fou encap-sport ${FOU_PORT} encap-dport ${FOU_PORT}`;
  return `
    ip link add fou4-${index} type ipip local ${pod.ipv4} remote ${gateway.ipv4} ttl 225 ${encapsulation}
    ip link add fou6-${index} type ip6tnl mode ip6ip6 local ${pod.ipv6} remote ${gateway.ipv6} ttl 225 encaplimit none ${encapsulation}
    ip link set fou4-${index} up
    ip link set fou6-${index} up
    ip route add ${target.ipv4} dev fou4-${index} src ${pod.ipv4}
    ip route add ${target.ipv6} dev fou6-${index} src ${pod.ipv6}`;
}
