import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "../client/client.ts";
import type { Family } from "../family.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import { countingKernel, Interrupted, interruptedKernel } from "../testing/interrupted.ts";
import {
  addressOf,
  ask,
  buildTopology,
  destroyTopology,
  flows,
  forge,
  inside,
  kernelOf,
  type Namespace,
  seenBy,
  serve,
} from "../testing/topology.ts";
import { Gateway } from "./gateway.ts";
import { prepareGatewayNetns } from "./netns.ts";

const families: readonly Family[] = ["ipv4", "ipv6"];
const newGateway = (kernel = kernelOf("gateway")) => new Gateway(gatewayConfig(), { kernel, logger: silent });
const gateway = newGateway();
const both = [gatewayClient("client"), gatewayClient("neighbour")];

const clientElements = () => inside("gateway", "nft list map inet egress_nat_gateway clients4");

beforeAll(buildTopology);
afterAll(destroyTopology);

describe("before the network namespace is prepared", () => {
  test("init refuses, and says who can help", async () => {
    await expect(gateway.init()).rejects.toMatchObject({
      code: "forwarding-disabled",
      retryable: true,
      message: expect.stringContaining("net.ipv4.ip_forward and net.ipv6.conf.all.forwarding is not 1"),
    });
  });
});

test("an init that is killed again and again ends in the same state as one that is not", async () => {
  const everything = async () =>
    (
      await inside(
        "gateway",
        "ip -details link show type ipip; ip fou show; ip rule; ip -6 rule; ip route show table all; nft list ruleset",
      )
    ).replaceAll(/^\d+: /gm, "");
  await prepareGatewayNetns(kernelOf("gateway"));
  for (let done = false; !done; ) {
    done = await newGateway(interruptedKernel(kernelOf("gateway"), 3))
      .init()
      .then(
        () => true,
        (error) => {
          expect(error).toBeInstanceOf(Interrupted);
          return false;
        },
      );
  }
  const state = await everything();
  const kernel = countingKernel(kernelOf("gateway"));
  await newGateway(kernel).init();
  expect(kernel.writes()).toBe(0);
  expect(await everything()).toBe(state);
});

describe("with two clients", () => {
  beforeAll(async () => {
    await gateway.init();
    await gateway.sync(both);
    for (const namespace of ["client", "neighbour", "stranger"] as const) {
      // The stranger makes links, routes and the FoU port of a client by hand, but no slice names it.
      const client = new Client({ kernel: kernelOf(namespace), logger: silent });
      await client.apply(clientConfig(egress()));
    }
  });

  test.each(families)("clients pass and a stranger with a client's links does not (%s)", async (family) => {
    expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
    expect(await ask("neighbour", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
    for (const protocol of ["tcp", "udp"] as const) {
      expect(await ask("stranger", protocol, addressOf("internet", family), "--timeout 2")).toBe("timeout");
    }
  });

  describe.each(families)("forged packets (%s)", (family) => {
    const at = (role: string) => addressOf(role, family);
    const metadata = family === "ipv4" ? "169.254.169.254" : "fd00:ec2::254";
    const loopback = family === "ipv4" ? "127.0.0.1" : "::1";
    const listeners = ["internet", "stranger", "gateway", "client", "router"] as const;
    const stop: (() => Promise<void>)[] = [];

    beforeAll(async () => {
      // To a client's own filter the stranger is no stranger's business: it may send what it likes.
      await new Client({ kernel: kernelOf("stranger"), logger: silent }).remove();
      await inside("router", `ip address replace ${metadata} dev lo`);
      for (const namespace of listeners) {
        if (namespace !== "internet") stop.push(await serve(namespace, 9000));
      }
    });

    afterAll(async () => {
      for (const end of stop) await end();
    });

    /** Whoever got a datagram with this payload, once everything that was sent before has arrived or is lost. */
    async function receivers(payload: string): Promise<Namespace[]> {
      await ask("client", "udp", at("internet"));
      const logs = await Promise.all(listeners.map(async (name) => [name, await seenBy(name)] as const));
      return logs.filter(([, lines]) => lines.some((line) => line.endsWith(payload))).map(([name]) => name);
    }

    test("the control: a client's own FoU with its own source arrives, in fragments too", async () => {
      const packet = { to: at("gateway"), source: at("client"), destination: at("internet") };
      await forge("client", "fou", packet, "control-small");
      await forge("client", "fou", { ...packet, size: 3000 }, "control-fragmented");
      expect(await receivers("control-small")).toEqual(["internet"]);
      expect(await receivers("control-fragmented")).toEqual(["internet"]);
    });

    test.each<
      [string, Namespace, "fou" | "plain", { to: string; source: string; destination: string; size?: number }]
    >([
      [
        "a stranger's FoU, own inner source",
        "stranger",
        "fou",
        { to: at("gateway"), source: at("stranger"), destination: at("internet") },
      ],
      [
        "a stranger's FoU, a client's inner source",
        "stranger",
        "fou",
        { to: at("gateway"), source: at("client"), destination: at("internet") },
      ],
      [
        "a stranger's FoU in fragments",
        "stranger",
        "fou",
        { to: at("gateway"), source: at("client"), destination: at("internet"), size: 3000 },
      ],
      [
        "a stranger's FoU to the Service",
        "stranger",
        "fou",
        { to: at("service"), source: at("client"), destination: at("internet") },
      ],
      [
        "a stranger's tunnel without UDP, own inner source",
        "stranger",
        "plain",
        { to: at("gateway"), source: at("stranger"), destination: at("internet") },
      ],
      [
        "a stranger's tunnel without UDP, a client's inner source",
        "stranger",
        "plain",
        { to: at("gateway"), source: at("client"), destination: at("internet") },
      ],
      [
        "a client's tunnel without UDP",
        "client",
        "plain",
        { to: at("gateway"), source: at("client"), destination: at("internet") },
      ],
      [
        "a stranger's FoU to a client, to be relayed",
        "stranger",
        "fou",
        { to: at("client"), source: at("client"), destination: at("internet") },
      ],
      [
        "a stranger's FoU to a client, for its own sockets",
        "stranger",
        "fou",
        { to: at("client"), source: at("internet"), destination: at("client") },
      ],
      [
        "a stranger's tunnel without UDP to a client",
        "stranger",
        "plain",
        { to: at("client"), source: at("internet"), destination: at("client") },
      ],
      [
        "a neighbour's inner source",
        "client",
        "fou",
        { to: at("gateway"), source: at("neighbour"), destination: at("internet") },
      ],
      [
        "an inner source of nobody",
        "client",
        "fou",
        { to: at("gateway"), source: at("narrow"), destination: at("internet") },
      ],
      [
        "a client's FoU to a pod",
        "client",
        "fou",
        { to: at("gateway"), source: at("client"), destination: at("stranger") },
      ],
      [
        "a client's FoU to another client",
        "neighbour",
        "fou",
        { to: at("gateway"), source: at("neighbour"), destination: at("client") },
      ],
      [
        "a client's FoU to the metadata service",
        "client",
        "fou",
        { to: at("gateway"), source: at("client"), destination: metadata },
      ],
      [
        "a client's FoU to the gateway's sockets",
        "client",
        "fou",
        { to: at("gateway"), source: at("client"), destination: at("gateway") },
      ],
      [
        "a client's FoU to the gateway's loopback",
        "client",
        "fou",
        { to: at("gateway"), source: at("client"), destination: loopback },
      ],
      [
        "a client's FoU to a private destination of no Egress",
        "client",
        "fou",
        { to: at("gateway"), source: at("client"), destination: at("narrow") },
      ],
    ])("%s arrives nowhere", async (name, from, how, packet) => {
      const payload = name.replaceAll(/[^a-z]+/gi, "-").slice(-40);
      await forge(from, how, packet, payload);
      expect(await receivers(payload)).toEqual([]);
    });

    test("a packet with a foreign source, routed to a client by way of the gateway, arrives nowhere", async () => {
      const version = family === "ipv4" ? "" : "-6";
      await inside("stranger", `ip ${version} route replace ${at("client")} via ${at("gateway")} dev eth0`);
      const packet = { to: at("client"), source: at("internet"), destination: at("client") };
      await forge("stranger", "bare", packet, "foreign-source");
      expect(await receivers("foreign-source")).toEqual([]);
      await inside("stranger", `ip ${version} route del ${at("client")}`);
    });
  });

  test.each(families)(
    "flows live on when the gateway program restarts; nothing is written (%s)",
    async (family) => {
      const elements = await clientElements();
      const talk = ask("client", "tcp", addressOf("internet", family), "--times 15 --pause 0.2");
      const kernel = countingKernel(kernelOf("gateway"));
      const restarted = newGateway(kernel);
      await restarted.init();
      await restarted.sync(both);
      expect(new Set((await talk).split("\n"))).toEqual(new Set([addressOf("gateway", family)]));
      expect(kernel.writes()).toBe(0);
      expect(await clientElements()).toBe(elements);
    },
  );

  test("a destination that is taken from the Egress is out of reach at once, and its return brings it back", async () => {
    await gateway.configure(gatewayConfig({ destinations: ["203.0.113.0/24"] }));
    for (const family of families) {
      expect(await ask("client", "tcp", addressOf("internet", family), "--timeout 2")).toBe("timeout");
    }
    await gateway.configure(gatewayConfig());
    for (const family of families) {
      expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
    }
  });

  test("a client that is removed loses its elements and its flows, inner and outer; others keep theirs", async () => {
    for (const family of families) await ask("neighbour", "udp", addressOf("internet", family));
    await gateway.update({ remove: ["client"] });
    for (const family of families) {
      expect(await flows("gateway", `src=${addressOf("client", family)} `)).toEqual([]);
      expect(await flows("gateway", `src=${addressOf("neighbour", family)} `)).not.toEqual([]);
      expect(await ask("client", "tcp", addressOf("internet", family), "--timeout 2")).toBe("timeout");
    }
    const ruleset = await inside("gateway", "nft list table inet egress_nat_gateway");
    for (const family of families) expect(ruleset).not.toContain(`${addressOf("client", family)} `);
    await gateway.update({ put: [gatewayClient("client")] });
    expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
  });

  test("flows of an address do not pass to its next owner", async () => {
    await ask("client", "udp", addressOf("internet", "ipv4"));
    await gateway.update({ remove: ["client"], put: [{ ...gatewayClient("client"), id: "successor" }] });
    expect(await flows("gateway", `src=${addressOf("client", "ipv4")} `)).toEqual([]);
    await gateway.sync(both);
  });

  test("10,000 clients are one transaction, and one more is another", async () => {
    const kernel = countingKernel(kernelOf("gateway"));
    const counted = newGateway(kernel);
    await counted.init();
    const many = Array.from({ length: 10_000 }, (_, i) => ({
      id: `pod-${i}`,
      addresses: [`10.${100 + (i >> 14)}.${(i >> 8) & 63}.${i & 255}`],
    }));
    await counted.sync([...both, ...many]);
    expect(kernel.writes()).toBe(1);
    await counted.update({ put: [{ id: "one-more", addresses: ["10.200.0.1"] }] });
    expect(kernel.writes()).toBe(2);
    expect((await clientElements()).match(/: 0x/g)).toHaveLength(10_003);
    expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
  });
});
