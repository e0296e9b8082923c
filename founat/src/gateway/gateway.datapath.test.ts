import { availableParallelism } from "node:os";
import { FAMILIES } from "@egress-nat/addresses";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "../client/client.ts";
import { probeAddress } from "../routing/probe-addresses.ts";
import { BACKENDS, packetFilter } from "../testing/backends.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import { countingKernel, Interrupted, interruptedKernel } from "../testing/interrupted.ts";
import {
  ADDRESSES,
  addressOf,
  ask,
  bareAnswers,
  buildTopology,
  CLUSTER_RANGES,
  destroyTopology,
  type ForgedPacket,
  flows,
  forge,
  heard,
  inside,
  kernelOf,
  type Namespace,
  seenBy,
  serve,
  silence,
  subscribe,
} from "../testing/topology.ts";
import type { GatewayConfig } from "./config.ts";
import { Gateway } from "./gateway.ts";
import { prepareGatewayNetns } from "./netns.ts";

/** Payload of a packet that the uplink carries, but not with the tunnel's headers around it. Routers split no IPv6. */
const FRAGMENTED = 1450;

const SOON = { timeout: 20_000 };

describe.each(BACKENDS)("with $name", (tested) => {
  const testAtLength = test.runIf(tested.atLength);
  const configOf = (changes: Partial<GatewayConfig> = {}) =>
    gatewayConfig({ backend: tested.backend, ...changes });
  /** How conntrack tells of a flow that takes the fastest path. */
  const established = tested.fastPath ? "[OFFLOAD]" : "[ASSURED]";
  const [make = "", undo = ""] = tested.machine ?? [];
  const newGateway = (kernel = kernelOf("gateway")) => new Gateway(configOf(), { kernel, logger: silent });
  const gateway = newGateway();
  const both = [gatewayClient("client"), gatewayClient("neighbour")];

  /** TCP talks of the client, one of each family, that the gateway's fast path carries by now. */
  async function establishedTalks(times: number): Promise<Promise<string>[]> {
    const talks = FAMILIES.map((family) =>
      ask("client", "tcp", addressOf("internet", family), { times, pause: 0.2, timeout: 2 }),
    );
    await carried(FAMILIES.map((family) => ["tcp ", `src=${addressOf("client", family)} `]));
    return talks;
  }

  /** Waits until flows, each told by what its line holds, take the fastest path there is. */
  async function carried(wanted: readonly (readonly string[])[]): Promise<void> {
    const areCarried = async () => {
      const lines = await flows("gateway", established);
      return wanted.every((texts) => lines.some((line) => texts.every((text) => line.includes(text))));
    };
    await expect.poll(areCarried, SOON).toBe(true);
  }

  /** Runs an init that is killed after some writing commands, and says whether it came to its end. */
  function initUntilKilled(config: GatewayConfig): Promise<boolean> {
    const killed = new Gateway(config, {
      kernel: interruptedKernel(kernelOf("gateway"), tested.killedAfter),
      logger: silent,
    });
    return killed.init().then(
      () => true,
      (error) => {
        expect(error).toBeInstanceOf(Interrupted);
        return false;
      },
    );
  }

  const clientElements = () => inside("gateway", tested.clients);

  beforeAll(async () => {
    await machine.run(make);
    await buildTopology();
  });
  afterAll(async () => {
    await destroyTopology();
    await machine.run(undo);
  });

  describe("before the network namespace is prepared", () => {
    test("init refuses, and says who can help", async () => {
      await expect(gateway.init()).rejects.toMatchObject({
        code: "forwarding-disabled",
        retryable: true,
        message: expect.stringContaining("net.ipv4.ip_forward and net.ipv6.conf.all.forwarding is not 1"),
      });
    });
  });

  testAtLength(
    "an init that is killed again and again ends in the same state as one that is not",
    async () => {
      const everything = async () =>
        (
          await inside(
            "gateway",
            `ip -details link show type ipip; ip fou show; ip rule; ip -6 rule; ip route show table all; ${tested.everything}`,
          )
        ).replaceAll(/^\d+: /gm, "");
      await prepareGatewayNetns(kernelOf("gateway"));
      while (!(await initUntilKilled(configOf())));
      const state = await everything();
      const kernel = countingKernel(kernelOf("gateway"));
      await newGateway(kernel).init();
      expect(kernel.writes()).toBe(0);
      expect(await everything()).toBe(state);
    },
  );

  describe("with two clients", () => {
    beforeAll(async () => {
      await prepareGatewayNetns(kernelOf("gateway"));
      await gateway.init();
      await gateway.sync(both);
      for (const namespace of ["client", "neighbour", "stranger"] as const) {
        // The stranger makes links, routes and the FoU port of a client by hand, but no slice names it.
        const client = new Client({ kernel: kernelOf(namespace), logger: silent });
        await client.apply(clientConfig(egress()));
      }
    });

    test.each(FAMILIES)("clients pass and a stranger with a client's links does not (%s)", async (family) => {
      const internet = addressOf("internet", family);
      const answers = await Promise.all([
        ask("client", "tcp", internet),
        ask("neighbour", "tcp", internet),
        ask("stranger", "tcp", internet, { timeout: 2 }),
        ask("stranger", "udp", internet, { timeout: 2 }),
      ]);
      const gatewayAddress = addressOf("gateway", family);
      expect(answers).toEqual([gatewayAddress, gatewayAddress, "timeout", "timeout"]);
    });

    test("a client's probe is answered, a stranger's is not", async () => {
      const probe = (namespace: Namespace, timeoutMs: number) =>
        new Client({ kernel: kernelOf(namespace), logger: silent }).probe(clientConfig(egress()), {
          addresses: ADDRESSES[namespace] ?? {},
          timeoutMs,
        });
      expect(await probe("client", 10_000)).toEqual([]);
      expect((await probe("stranger", 1000)).map(({ family }) => family)).toEqual(FAMILIES);
    });

    describe.each(FAMILIES)("forged packets (%s)", (family) => {
      const at = (role: string) => addressOf(role, family);
      const metadata = family === "ipv4" ? "169.254.169.254" : "fd00:ec2::254";
      const probe = probeAddress(family, 0) ?? "";
      const loopback = family === "ipv4" ? "127.0.0.1" : "::1";
      const listeners = ["internet", "stranger", "gateway", "client", "router"] as const;
      const toGateway = {
        how: "fou",
        to: at("gateway"),
        source: at("client"),
        destination: at("internet"),
      } as const;
      const toClient = {
        how: "fou",
        to: at("client"),
        source: at("internet"),
        destination: at("client"),
      } as const;

      type Case = [name: string, from: Namespace, packet: Omit<ForgedPacket, "payload">];
      const controls: Case[] = [
        ["a client's FoU with its own source", "client", toGateway],
        ["a client's FoU in fragments", "client", { ...toGateway, size: FRAGMENTED }],
      ];
      const attacks: Case[] = [
        ["a stranger's FoU, own inner source", "stranger", { ...toGateway, source: at("stranger") }],
        ["a stranger's FoU, a client's inner source", "stranger", toGateway],
        ["a stranger's FoU in fragments", "stranger", { ...toGateway, size: FRAGMENTED }],
        ["a stranger's FoU to the Service", "stranger", { ...toGateway, to: at("service") }],
        [
          "a stranger's plain tunnel, own source",
          "stranger",
          { ...toGateway, how: "plain", source: at("stranger") },
        ],
        ["a stranger's plain tunnel, a client's source", "stranger", { ...toGateway, how: "plain" }],
        ["a client's plain tunnel", "client", { ...toGateway, how: "plain" }],
        ["a stranger's FoU that a client should relay", "stranger", { ...toGateway, to: at("client") }],
        [
          "a stranger's plain tunnel that a client should relay",
          "stranger",
          { ...toGateway, how: "plain", to: at("client") },
        ],
        ["a stranger's FoU to a client's sockets", "stranger", toClient],
        ["a stranger's plain tunnel to a client's sockets", "stranger", { ...toClient, how: "plain" }],
        ["a neighbour's inner source", "client", { ...toGateway, source: at("neighbour") }],
        ["an inner source of nobody", "client", { ...toGateway, source: at("narrow") }],
        ["a client's FoU to a pod", "client", { ...toGateway, destination: at("stranger") }],
        [
          "a client's FoU to another client",
          "neighbour",
          { ...toGateway, source: at("neighbour"), destination: at("client") },
        ],
        ["a client's FoU to the metadata service", "client", { ...toGateway, destination: metadata }],
        ["a client's FoU to the gateway", "client", { ...toGateway, destination: at("gateway") }],
        ["a client's FoU to the gateway's loopback", "client", { ...toGateway, destination: loopback }],
        ["a client's FoU to the gateway's probe address", "client", { ...toGateway, destination: probe }],
        [
          "a packet to the gateway's probe address, around the tunnel",
          "stranger",
          { ...toGateway, how: "bare", source: at("stranger"), destination: probe },
        ],
        [
          "a client's FoU to a private destination of no Egress",
          "client",
          { ...toGateway, destination: at("narrow") },
        ],
        [
          "a foreign source, routed to a client by way of the gateway",
          "stranger",
          { ...toClient, how: "bare" },
        ],
      ];
      const payloadOf = (name: string) => `${family}-${name.replaceAll(/[^a-z]+/gi, "-").slice(-35)}`;
      const received = new Map<Namespace, readonly string[]>();
      const receivers = (name: string) =>
        listeners.filter((listener) =>
          received.get(listener)?.some((line) => line.endsWith(payloadOf(name))),
        );

      // All are sent before anything is looked at: a process for each would take minutes.
      beforeAll(async () => {
        await new Client({ kernel: kernelOf("stranger"), logger: silent }).remove();
        const version = family === "ipv4" ? "" : "-6";
        await inside("router", `ip address replace ${metadata} dev lo`);
        await inside("stranger", `ip ${version} route replace ${at("client")} via ${at("gateway")} dev eth0`);
        await Promise.all(listeners.map((name) => serve(name, 9000)));
        for (const sender of ["client", "neighbour", "stranger"] as const) {
          await forge(
            sender,
            [...controls, ...attacks]
              .filter(([, from]) => from === sender)
              .map(([name, , packet]) => ({ ...packet, payload: payloadOf(name) })),
          );
        }
        // Whatever was sent before has arrived or is lost when this one is answered.
        await ask("client", "udp", at("internet"));
        for (const listener of listeners) received.set(listener, await seenBy(listener));
        await inside("stranger", `ip ${version} route del ${at("client")}`);
      });

      test.each(controls)("the control: %s reaches the internet", (name) => {
        expect(receivers(name)).toEqual(["internet"]);
      });

      test.each(attacks)("%s arrives nowhere", (name) => {
        expect(receivers(name)).toEqual([]);
      });
    });

    test.each(FAMILIES)(
      "no client fills in another one's fragmented datagram, or spoils it (%s)",
      async (family) => {
        const [source, destination] = [addressOf("client", family), addressOf("internet", family)];
        const datagram = {
          how: "fou",
          to: addressOf("gateway", family),
          source,
          destination,
          size: 1000,
        } as const;
        const arrived = async () => {
          await ask("client", "udp", destination);
          return (await seenBy("internet")).filter((line) => line.includes(` whole_${family}`));
        };
        const send = (from: Namespace, payload: string, fragment: readonly [number, number]) =>
          forge(from, [{ ...datagram, payload, fragment }]);

        const whole = `whole_${family}`;
        await send("client", whole, [0, 504]);
        // Of other bytes than the spaces that end the client's.
        await send("neighbour", "x".repeat(1000), [504, 1008]);
        await send("client", whole, [504, 1008]);
        expect(await arrived()).toEqual([`${addressOf("gateway", family)} 1000 whole_${family}`]);
      },
    );

    test("a routing header takes no packet of a client on from a destination to another place", async () => {
      const [source, destination] = [addressOf("client", "ipv6"), addressOf("narrow", "ipv6")];
      // Its sum is that of `destination`: to conntrack, and at both of them, the packet's checksum is right.
      const route = "2001:db8::cfe1";
      const send = (payload: string) =>
        forge("client", [
          { how: "fou", to: addressOf("gateway", "ipv6"), source, destination, route, payload },
        ]);
      const arrived = async (payload: string) => {
        await ask("client", "udp", addressOf("internet", "ipv6"));
        return (await seenBy("internet")).filter((line) => line.endsWith(` ${payload}`));
      };
      const dropped = async () => (await gateway.drops()).get("routing_header") ?? 0;
      // No preferred lifetime: the server goes on answering from its other address.
      await inside(
        "internet",
        `ip address add ${route}/64 dev eth0 nodad preferred_lft 0
       sysctl -qw net.ipv6.conf.all.seg6_enabled=1 net.ipv6.conf.eth0.seg6_enabled=1`,
      );

      const before = await dropped();
      await send("routed");
      expect(await arrived("routed")).toEqual([]);
      expect(await dropped()).toBe(before + 1);

      // The control: that rule alone stops it.
      await inside("gateway", tested.allowRoutingHeaders);
      await send("let-through");
      expect(await arrived("let-through")).toEqual([
        expect.stringMatching(new RegExp(`^${addressOf("gateway", "ipv6")} `)),
      ]);
      await newGateway().init();
      await send("stopped-again");
      expect(await arrived("stopped-again")).toEqual([]);
    });

    test.each(FAMILIES)(
      "a client's flow to which NAT gave the tunnel's port is answered (%s)",
      async (family) => {
        await inside(
          "gateway",
          `nft 'add table inet pinned
        add chain inet pinned source_nat { type nat hook postrouting priority srcnat - 1; }
        add rule inet pinned source_nat oifname "eth0" udp dport 9000 masquerade to :5555'`,
        );
        try {
          expect(await ask("client", "udp", addressOf("internet", family))).toBe(
            `${addressOf("gateway", family)} 5`,
          );
          const given = (await flows("gateway", "dport=5555 ")).filter((line) =>
            line.includes(`src=${addressOf("client", family)} `),
          );
          expect(given).toEqual([expect.stringMatching(/dport=9000 .*dport=5555 /)]);
        } finally {
          await inside("gateway", "nft delete table inet pinned");
        }
      },
    );

    testAtLength("flows live on when the gateway program restarts; nothing is written", async () => {
      const elements = await clientElements();
      const talks = FAMILIES.map((family) =>
        ask("client", "tcp", addressOf("internet", family), { times: 15, pause: 0.2 }),
      );
      const kernel = countingKernel(kernelOf("gateway"));
      const restarted = newGateway(kernel);
      await restarted.init();
      await restarted.sync(both);
      for (const [index, family] of FAMILIES.entries()) {
        expect(new Set((await talks[index])?.split("\n"))).toEqual(new Set([addressOf("gateway", family)]));
      }
      expect(kernel.writes()).toBe(0);
      expect(await clientElements()).toBe(elements);
    });

    testAtLength("established flows take the fast path, both ways through the tunnel", async () => {
      const before = await bareAnswers();
      const answers = await Promise.all(await establishedTalks(20));
      for (const [index, family] of FAMILIES.entries()) {
        expect(new Set(answers[index]?.split("\n"))).toEqual(new Set([addressOf("gateway", family)]));
      }
      expect(await bareAnswers()).toBe(before);
    });

    test.each(FAMILIES)("nobody gets into an established flow of a client (%s)", async (family) => {
      const [gateway, source, destination] = ["gateway", "client", "internet"].map((role) =>
        addressOf(role, family),
      ) as [string, string, string];
      const send = (from: Namespace, payload: string) =>
        forge(from, [{ how: "fou", to: gateway, source, destination, payload: `${payload}-${family}` }]);
      await send("client", "first");
      await send("client", "second");
      const lines = await flows("gateway", tested.fastPath ? "[OFFLOAD]" : "");
      expect(lines.some((line) => line.includes(`src=${source} dst=${destination} sport=4444 `))).toBe(true);
      await send("neighbour", "forged");
      await send("stranger", "forged");
      await send("client", "third");
      await ask("client", "udp", destination);
      const payloads = (await seenBy("internet")).filter((line) => line.endsWith(`-${family}`));
      expect(payloads.map((line) => line.split(" ").at(-1))).toEqual(
        ["first", "second", "third"].map((payload) => `${payload}-${family}`),
      );
    });

    testAtLength("a destination that is taken from the Egress ends the flows to it", async () => {
      const talks = await establishedTalks(200);
      await gateway.configure(configOf({ destinations: ["203.0.113.0/24"] }));
      for (const talk of talks) expect(await talk).toMatch(/timeout$/);
      await gateway.configure(configOf());
    });

    testAtLength(
      "a destination that is excluded is cut off from its flows, both ways, also where the fast path carries them",
      async () => {
        const servers = FAMILIES.map((family) => addressOf("internet", family));
        const counts = async () => {
          const got = (await seenBy("internet")).filter((line) => line.endsWith(" more"));
          const gotBy = FAMILIES.map(
            (family) => got.filter((line) => line.startsWith(`${addressOf("gateway", family)} `)).length,
          );
          return [...gotBy, ...(await Promise.all(servers.map(heard)))];
        };
        const dropped = async () => (await gateway.drops()).get("not_allowed") ?? 0;
        const moreAreDropped = async () => {
          const before = await dropped();
          await expect.poll(dropped, SOON).toBeGreaterThan(before + 10);
        };
        const ports = await Promise.all(servers.map(subscribe));
        await carried(ports.map((port) => ["udp ", `sport=${port} dport=9000 `]));
        await gateway.configure(configOf({ excluded: [...CLUSTER_RANGES, ...servers] }));
        await moreAreDropped();
        const before = await counts();
        await moreAreDropped();
        expect(await counts()).toEqual(before);
        await gateway.configure(configOf());
        const grown = async () => (await counts()).every((count, index) => count > (before[index] ?? 0));
        await expect.poll(grown, SOON).toBe(true);
        await silence();
      },
    );

    test("a client that is removed is cut off from its flows", async () => {
      const talks = await establishedTalks(200);
      await gateway.update({ remove: ["client"] });
      for (const talk of talks) expect(await talk).toMatch(/timeout$/);
      await gateway.update({ put: [gatewayClient("client")] });
    });

    testAtLength("a tunnel link that was taken away comes back with its checks", async () => {
      // Each chain as a whole, in any order: one that is added again is listed last.
      const listing = async () =>
        (await inside("gateway", `${tested.everything}; ip -details link show type ipip; ip rule`))
          .replaceAll(/^\d+: /gm, "")
          .split(/\n\n|\n(?=\}\n)/)
          .toSorted();
      const before = await listing();
      await inside("gateway", "ip link del fou4; ip link del fou6");
      await newGateway().init();
      expect(await listing()).toEqual(before);
      expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
    });

    testAtLength(
      "wherever a change of the source ports is interrupted, every tunnel link that is up has its check",
      async () => {
        const unguarded = async () => {
          const links = await inside("gateway", "ip -oneline link show group 119 up");
          const names = Array.from(links.matchAll(/ (fou\w+)@/g), ([, name = ""]) => name);
          const areChecked = names.map(async (name) => {
            const [command, text] = tested.check(name);
            return (await inside("gateway", command)).includes(text);
          });
          return (await Promise.all(areChecked)).filter((isChecked) => !isChecked);
        };
        for (let done = false, kills = 0; !done; kills += 1) {
          expect(kills).toBeLessThan(20);
          done = await initUntilKilled(configOf({ sourcePortAuto: true }));
          expect(await unguarded()).toEqual([]);
        }
        await newGateway().init();
        expect(await ask("client", "tcp", addressOf("internet", "ipv6"))).toBe(addressOf("gateway", "ipv6"));
      },
    );

    testAtLength(
      "a destination that is taken from the Egress is out of reach at once, and its return brings it back",
      async () => {
        const answers = (timeout: number) =>
          Promise.all(
            FAMILIES.map((family) => ask("client", "tcp", addressOf("internet", family), { timeout })),
          );
        await gateway.configure(configOf({ destinations: ["203.0.113.0/24"] }));
        expect(await answers(2)).toEqual(["timeout", "timeout"]);
        await gateway.configure(configOf());
        expect(await answers(20)).toEqual(FAMILIES.map((family) => addressOf("gateway", family)));
      },
    );

    test("a client that is removed loses its elements and its flows, inner and outer; others keep theirs", async () => {
      for (const family of FAMILIES) await ask("neighbour", "udp", addressOf("internet", family));
      await gateway.update({ remove: ["client"] });
      const left = await flows("gateway", "src=");
      for (const family of FAMILIES) {
        const of = (role: string) => left.filter((line) => line.includes(`src=${addressOf(role, family)} `));
        expect(of("client")).toEqual([]);
        expect(of("neighbour")).not.toEqual([]);
      }
      const answers = FAMILIES.map((family) =>
        ask("client", "tcp", addressOf("internet", family), { timeout: 2 }),
      );
      expect(await Promise.all(answers)).toEqual(["timeout", "timeout"]);
      const ruleset = await packetFilter(tested);
      for (const family of FAMILIES) expect(ruleset).not.toContain(`${addressOf("client", family)} `);
      await gateway.update({ put: [gatewayClient("client")] });
      expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
    });

    test("flows of an address do not pass to its next owner", async () => {
      await ask("client", "udp", addressOf("internet", "ipv4"));
      await gateway.update({ remove: ["client"], put: [{ ...gatewayClient("client"), id: "successor" }] });
      expect(await flows("gateway", `src=${addressOf("client", "ipv4")} `)).toEqual([]);
      await gateway.sync(both);
    });

    testAtLength(
      "flows that a killed program left to a client that is gone are ended by the next one",
      async () => {
        for (const family of FAMILIES) await ask("client", "udp", addressOf("internet", family));
        const kernel = kernelOf("gateway");
        const killed = newGateway({
          ...kernel,
          run: (steps) =>
            JSON.stringify(steps).includes("conntrack")
              ? Promise.reject(new Interrupted())
              : kernel.run(steps),
        });
        await expect(killed.sync([gatewayClient("neighbour")])).rejects.toThrow(Interrupted);
        const left = () =>
          Promise.all(FAMILIES.map((family) => flows("gateway", `src=${addressOf("client", family)} `)));
        expect((await left()).flat()).not.toEqual([]);
        const next = newGateway();
        await next.init();
        await next.sync([gatewayClient("neighbour")]);
        expect(await left()).toEqual([[], []]);
      },
    );

    testAtLength("10,000 clients are one command per processor, and one more is another", async () => {
      const kernel = countingKernel(kernelOf("gateway"));
      const counted = newGateway(kernel);
      await counted.init();
      const many = Array.from({ length: 10_000 }, (_, i) => ({
        id: `pod-${i}`,
        addresses: [`10.${100 + (i >> 14)}.${(i >> 8) & 63}.${i & 255}`],
      }));
      await counted.sync([...both, ...many]);
      // None of fewer than 2,000 clients; ipset has no parser that would keep a processor busy.
      const atOnce = tested.backend === "iptables" ? 1 : Math.min(availableParallelism(), 5);
      expect(kernel.writes()).toBe(atOnce);
      await counted.update({ put: [{ id: "one-more", addresses: ["10.200.0.1"] }] });
      expect(kernel.writes()).toBe(atOnce + 1);
      expect((await clientElements()).match(tested.mark)).toHaveLength(10_003);
      expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
    });
  });
});
