import { join } from "node:path";
import { FAMILIES, type Family } from "@egress-nat/addresses";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "../client/client.ts";
import { BACKENDS, isLong, packetFilter, type TestedBackend } from "../testing/backends.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import type { DriftInput, DriftResult } from "../testing/drifting-gateway.ts";
import { filterRemovals } from "../testing/removals.ts";
import {
  addressOf,
  ask,
  bareAnswers,
  besiege,
  buildTopology,
  destroyTopology,
  type ForgedPacket,
  inside,
  kernelOf,
  leaks,
  silence,
  talk,
} from "../testing/topology.ts";
import type { GatewayConfig } from "./config.ts";
import { Gateway, type Suspicion } from "./gateway.ts";
import { prepareGatewayNetns } from "./netns.ts";

/** Where a stranger's packets go that should go nowhere: out through the gateway, and to the client. */
const STRANGERS_PORTS = { out: 9777, in: 9778 } as const;
/** Of the router: what should never come there, and how many outer packets the client sends. */
const COUNT = "ip netns exec router nft -j list counters table inet watch";
const ASTRAY = ["leaks", "bare_answers", "strangers_out"] as const;
const SENT = ["sent4", "sent6"] as const;

const clients = [gatewayClient("client"), gatewayClient("neighbour")];

/** One by one, on a machine that may be busy. */
const REMOVALS_MS = 580_000;

/** Runs the watching gateway in its namespace while commands take things away. */
async function drift(
  config: GatewayConfig,
  commands: readonly string[],
  holdMs: number,
): Promise<DriftResult[]> {
  const outfile = join(machine.share, "drifting-gateway.mjs");
  await build({
    entryPoints: [join(import.meta.dirname, "../testing/drifting-gateway.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["source"],
  });
  const input: DriftInput = { config, clients, holdMs, commands, count: COUNT, sent: SENT };
  const node = ["nsenter", "--net=/run/netns/gateway", "--", "node", outfile];
  const output = await machine.run([...node, JSON.stringify(input)], { timeoutMs: REMOVALS_MS });
  return JSON.parse(output) as DriftResult[];
}

/** What a gateway's namespace holds, each thing as the command that takes it away, from both families at once. */
async function removals(tested: TestedBackend): Promise<string[]> {
  const routing = await inside(
    "gateway",
    `for v in 4 6; do
      ip -$v rule | sed -n "s/^\\([0-9]*\\):.* proto 30$/ip -$v rule del pref \\1/p"
      ip -$v route show table all proto 30 | sed "s/ metric.*//; s/ proto .*//; s/ scope .*//; s/^/ip -$v route del /"
    done`,
  );
  const links = ["fou4", "fou6"].flatMap((link) => [
    `ip link set ${link} group 0`,
    `ip link set ${link} mtu 1300`,
    `ip link set ${link} down`,
    `ip link del ${link}`,
  ]);
  const filter = await filterRemovals(tested);
  // What is about routes is the same with each backend.
  if (tested.backend !== "nftables") return twins([...filter, ...links]);
  return [
    ...twins([...filter, ...routing.split("\n").filter(Boolean), ...links]),
    "ip -6 route add default dev lo table 118 metric 1",
    "ip route add default via 10.1.0.1 dev eth0 table 118 tos 0x10",
    "ip fou del port 5555; ip fou del port 5555 -6",
    // By one process, so that no tick finds the sockets gone.
    "printf 'fou del port 5555 %s\\n fou add port 5555 ipproto 47 %s\\n' '' '' -6 -6 | ip -batch -",
    "ip link set lo down",
  ];
}

/** Joins what is the same but for the family. */
function twins(commands: readonly string[]): string[] {
  const generic = (command: string) =>
    command
      .replace(/-[46] /, "")
      .replaceAll(/(fou|clients|inner|destinations)[46]/g, "$1")
      .replace(/route del local \S+/, "route del local");
  return Object.values(Object.groupBy(commands, generic)).map((pair = []) => pair.join("; "));
}

const ECHO_REQUEST = "0800000000010001";
const ECHO_REQUEST_6 = "8000000000010001";
/** Of 2001:db8::1. conntrack tracks none, and so translates none (nf_conntrack_proto_icmpv6.c). */
const NEIGHBOUR_ADVERTISEMENT = "88000000a000000020010db8000000000000000000000001";

function strangersPackets(family: Family): ForgedPacket[] {
  const at = (role: string) => addressOf(role, family);
  const throughTunnel = { how: "fou", to: at("gateway"), payload: "forged" } as const;
  const outwards = { destination: at("internet"), port: STRANGERS_PORTS.out };
  const inwards = { source: at("narrow"), destination: at("client"), port: STRANGERS_PORTS.in };
  return [
    { ...throughTunnel, ...outwards, source: at("stranger") },
    { ...throughTunnel, ...outwards, source: at("client") },
    { ...throughTunnel, ...inwards },
    { ...inwards, how: "bare", to: at("client"), payload: "bare" },
  ];
}

/** What a client may send, whether it is answered or not. */
function clientsPackets(family: Family): ForgedPacket[] {
  const [source, destination, to] = ["client", "internet", "gateway"].map((role) =>
    addressOf(role, family),
  ) as [string, string, string];
  const packet = { how: "fou", to, source, destination, payload: "own" } as const;
  const messages = family === "ipv4" ? [ECHO_REQUEST] : [ECHO_REQUEST_6, NEIGHBOUR_ADVERTISEMENT];
  return [packet, ...messages.map((icmp) => ({ ...packet, icmp }))];
}

describe.each(BACKENDS)("with $name", (tested) => {
  const testAtLength = test.runIf(tested.atLength);
  const config = gatewayConfig({ backend: tested.backend });
  const gateway = new Gateway(config, { kernel: kernelOf("gateway"), logger: silent });
  const [make = "", undo = ""] = tested.machine ?? [];

  beforeAll(async () => {
    await machine.run(make);
    await buildTopology();
    await prepareGatewayNetns(kernelOf("gateway"));
    await gateway.init();
    await gateway.sync(clients);
    await new Client({ kernel: kernelOf("client"), logger: silent }).apply(clientConfig(egress()));
    await inside(
      "router",
      `nft 'add counter inet watch strangers_out; add counter inet watch sent4; add counter inet watch sent6
      add rule inet watch prerouting iifname "br0" udp dport ${STRANGERS_PORTS.out} counter name strangers_out
      add rule inet watch prerouting ip saddr ${addressOf("client", "ipv4")} udp dport 5555 counter name sent4
      add rule inet watch prerouting ip6 saddr ${addressOf("client", "ipv6")} udp dport 5555 counter name sent6'`,
    );
    await inside(
      "client",
      `nft 'add table inet watch; add counter inet watch strangers_in; add chain inet watch prerouting { type filter hook prerouting priority raw; }
      add rule inet watch prerouting udp dport ${STRANGERS_PORTS.in} counter name strangers_in'`,
    );
  });
  afterAll(async () => {
    await silence();
    await destroyTopology();
    await machine.run(undo);
  });

  testAtLength(
    "what was changed before a gateway's program starts, or right after it has changed something itself, is no model for it",
    async () => {
      const intact = await packetFilter(tested);
      // What a program leaves behind that is killed while it asks the kernel.
      await inside("gateway", tested.leftOfAsking);
      for (const command of tested.underOldNames) {
        await inside("gateway", command);
        expect(await packetFilter(tested)).not.toBe(intact);
        const restarted = new Gateway(config, { kernel: kernelOf("gateway"), logger: silent });
        await restarted.init();
        expect(await packetFilter(tested)).toBe(intact);
      }
      const elsewhere = { ...config, excluded: ["198.51.100.0/24"] };
      await gateway.configure(elsewhere);
      const reconfigured = await packetFilter(tested);
      expect(reconfigured).not.toBe(intact);
      for (const command of tested.underOldNames) {
        await gateway.configure(config);
        await gateway.configure(elsewhere);
        await inside("gateway", command);
        expect(await gateway.check()).not.toEqual([]);
        await gateway.repair();
        expect(await packetFilter(tested)).toBe(reconfigured);
      }
      await gateway.configure(config);
    },
  );

  test.runIf(tested.backend === "nftables")(
    "clients are not listed to compare what nobody has changed of them, until something has failed",
    async () => {
      const kernel = kernelOf("gateway");
      let read = "";
      let broken = false;
      const observed = new Gateway(config, {
        kernel: {
          read: async (steps) => {
            const output = await kernel.read(steps);
            read += output.join();
            return output;
          },
          run: (steps) => (broken ? Promise.reject(new Error("broken")) : kernel.run(steps)),
        },
        logger: silent,
      });
      const listsClients = async (where: Suspicion) => {
        read = "";
        expect(await observed.check(where)).toEqual([]);
        return read.includes('"val"'); // an element, as nft -j has it
      };
      await observed.init();
      await observed.sync(clients);
      expect(await listsClients({ elements: false })).toBe(true); // nobody has compared them yet
      expect(await listsClients({ elements: false })).toBe(false);
      expect(await listsClients({ elements: true })).toBe(true);
      broken = true;
      await expect(observed.update({ remove: ["client"] })).rejects.toThrow("broken");
      broken = false;
      await observed.sync(clients);
      expect(await listsClients({ elements: false })).toBe(true);
      expect(await listsClients({ elements: false })).toBe(false);
    },
  );

  test("clients go and come also where somebody else has changed one of their sets and not the other", async () => {
    await inside("gateway", tested.flushInner);
    const others = clients.filter(({ id }) => id !== "client");
    if (tested.backend === "nftables") await expect(gateway.sync(others)).rejects.toThrow();
    await gateway.sync(others);
    // ipset does not mind what is gone already, so that nothing was read again.
    if (tested.backend === "iptables") await gateway.repair();
    await gateway.sync(clients);
    expect(await gateway.check()).toEqual([]);
  });

  testAtLength(
    "whatever is taken from a gateway, no packet of a client leaves as it is, no stranger's gets in, and it comes back",
    async () => {
      // By day every third.
      const commands = (await removals(tested)).filter((_, index) => isLong || index % 3 === 0);
      for (const family of FAMILIES) {
        const [own, gateway] = [addressOf("client", family), addressOf("gateway", family)];
        const version = family === "ipv4" ? "" : "-6";
        await inside("stranger", `ip ${version} route replace ${own} via ${gateway} dev eth0`);
      }
      await besiege("stranger", FAMILIES.flatMap(strangersPackets));
      await besiege("client", FAMILIES.flatMap(clientsPackets));
      await talk(FAMILIES.map((family) => addressOf("internet", family)));
      const results = await drift(config, commands, 150);
      const drifts = results.map((result) => {
        const packets = (name: string) => result.packets[name] ?? 0;
        return { ...result, astray: ASTRAY.filter(packets), sent: SENT.map(packets) };
      });
      const table = drifts.map(
        ({ command, found, noticedMs, repairedMs, astray, sent }) =>
          `${sent.join("+")} sent, astray: ${astray.join(" ") || "none"}, ${noticedMs.toFixed(0)} ms + ${repairedMs.toFixed(0)} ms  ${command}  ${found.join("; ")}`,
      );
      console.log(table.join("\n"));
      const commandsOf = (kind: typeof drifts) => kind.map(({ command }) => command);
      expect({
        unnoticed: commandsOf(drifts.filter(({ found }) => found.length === 0)),
        letThrough: commandsOf(drifts.filter(({ astray }) => astray.length > 0)),
        withoutTraffic: commandsOf(drifts.filter(({ sent }) => sent.includes(0))),
      }).toEqual({ unnoticed: [], letThrough: [], withoutTraffic: [] });
      expect({ leaks: await leaks(), bare: await bareAnswers() }).toEqual({ leaks: 0, bare: 0 });
      expect(await inside("router", "nft list counter inet watch strangers_out")).toContain("packets 0 ");
      expect(await inside("client", "nft list counter inet watch strangers_in")).toContain("packets 0 ");
      await silence();
      expect(await gateway.check()).toEqual([]);
      for (const family of FAMILIES) {
        expect(await ask("client", "tcp", addressOf("internet", family))).toBe(addressOf("gateway", family));
      }
    },
    REMOVALS_MS + 20_000,
  );
});
