import { isDeepStrictEqual } from "node:util";
import { FOU_PORT, GatewayStatus, HEARTBEAT_PORT } from "@egress-nat/crds";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PlacedPod } from "../bed/workload/gateways.ts";
import { egress, probePod } from "../bed/workload/manifests.ts";
import type { NodeShell } from "../bed/workload/node-shell.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import { addressesOf } from "./kit/internet.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { whilePaused } from "./kit/product.ts";
import { Transfers } from "./kit/transfers.ts";
import { client, describeOnline, gatewaysOf, gatewaysReady, kubectl, nodeOf } from "./kit/world.ts";

/** The status follows what is so. */
const TOLD = { timeout: 60_000, interval: 1_000 };
const PICKED = { namespace: INTERNET_EGRESS.namespace, name: "picked" };

const object = egress(PICKED, { destinations: ["0.0.0.0/0", "::/0"], replicas: 2 });
const pod = probePod(client("keeper", PICKED));

describeOnline("the flows of a client whose gateways the agent picks", (internet) => {
  const outside = addressesOf(internet.wide);
  let keeper: ProbePod;
  let transfers: Transfers;

  beforeAll(async () => {
    await kubectl.apply(object);
    await gatewaysReady(PICKED);
    await kubectl.apply(pod);
    keeper = await ProbePod.ready(kubectl, NAMESPACE, "keeper");
    transfers = await Transfers.start(internet, [keeper]);
  });
  afterAll(() => kubectl.delete([pod, object], { wait: false }));

  test("stay when the Egress comes to have them picked by it", async () => {
    await change({ gatewaySelection: "Agent" });
    await gatewayOfNewFlows(await gatewaysOf(PICKED));
    await transfers.goOn();
  });

  test("stay when the Egress leaves the pick to the Service, and when it takes it back", async () => {
    await transfers.stop();
    transfers = await Transfers.start(internet, [keeper]);
    const picked = await links();
    await change({ gatewaySelection: "Service" });
    await linksOfNewFlows((now) => now.every((link) => !picked.includes(link)));
    // kube-proxy picks for each family by itself.
    expect(addressesOf(...(await gatewaysOf(PICKED)))).toEqual(expect.arrayContaining(await seen()));
    await transfers.goOn();
    await change({ gatewaySelection: "Agent" });
    await linksOfNewFlows((now) => isDeepStrictEqual(now, picked));
    await transfers.goOn();
  });

  test("stay with a gateway whose program stands still, while new ones go to the other, and come back", async () => {
    const gateways = await gatewaysOf(PICKED);
    const own = await gatewayOfNewFlows(gateways);
    await transfers.stop();
    transfers = await Transfers.start(internet, [keeper]);
    await whilePaused(PICKED.namespace, own.name, async () => {
      await gatewayOfNewFlows(gateways, ({ name }) => name !== own.name);
      await transfers.goOn();
    });
    await gatewayOfNewFlows(gateways, ({ name }) => name === own.name);
    await transfers.goOn();
  });

  test("begin elsewhere over IPv6 while their node reaches theirs over IPv4 only, and come back", async () => {
    const gateways = await gatewaysOf(PICKED);
    const own = await gatewayOfNewFlows(gateways);
    const other = gateways.find(({ name }) => name !== own.name);
    if (other === undefined) return expect.fail("there is no other gateway");
    await transfers.stop();
    await whileLost([own.ipv6], async () => {
      const wanted = [own.ipv4, other.ipv6];
      await waitUntil(async () => (await seen()).every((address) => wanted.includes(address)), {
        what: "new flows of keeper to use another gateway over IPv6 only",
        timeoutMs: 60_000,
        intervalMs: 500,
      });
      await expect.poll(() => statusOf(own), TOLD).toMatchObject({ state: "Suspect" });
    });
    await gatewayOfNewFlows(gateways, ({ name }) => name === own.name);
    transfers = await Transfers.start(internet, [keeper]);
  });

  test("stay with one that has lost its way out, while new ones go to the other, and come back", async () => {
    const { ipv4, ipv6 } = internet.wide;
    const gateways = await gatewaysOf(PICKED);
    const own = await gatewayOfNewFlows(gateways);
    const node = await nodeOf(own);
    await change({ uplinkProbe: { targets: [ipv4, ipv6] } });
    const lost = [
      `ip saddr ${own.ipv4} ip daddr ${ipv4} icmp type echo-request`,
      `ip6 saddr ${own.ipv6} ip6 daddr ${ipv6} icmpv6 type echo-request`,
    ];
    await whileDropping(node, ["forward"], lost, async () => {
      await gatewayOfNewFlows(gateways, ({ name }) => name !== own.name);
      await transfers.goOn();
      const reason = expect.stringMatching(/^uplink: no answer from/);
      await expect.poll(() => statusOf(own), TOLD).toMatchObject({ state: "Down", reason });
    });
    await gatewayOfNewFlows(gateways, ({ name }) => name === own.name);
    await transfers.goOn();
  });

  test("are reset where their node reaches their gateway no more, and the status says so", async () => {
    const gateways = await gatewaysOf(PICKED);
    const own = await gatewayOfNewFlows(gateways);
    await whileLost(addressesOf(own), async () => {
      await gatewayOfNewFlows(gateways, ({ name }) => name !== own.name);
      await transfers.break();
      const dead = { state: "Down", reason: "no answer through the tunnel", reportedBy: keeper.node };
      await expect.poll(() => statusOf(own), TOLD).toMatchObject(dead);
    });
    await gatewayOfNewFlows(gateways, ({ name }) => name === own.name);
    await expect.poll(() => statusOf(own), TOLD).toMatchObject({ state: "Ready" });
    await transfers.stop();
    transfers = await Transfers.start(internet, [keeper]);
  });

  test("stay with a gateway that is deleted, and new ones all go elsewhere", async () => {
    const gateways = await gatewaysOf(PICKED);
    const own = await gatewayOfNewFlows(gateways);
    await kubectl.run(["delete", "pod", own.name, "-n", PICKED.namespace, "--wait=false"]);
    const others = async () => (await gatewaysOf(PICKED)).filter(({ name }) => name !== own.name);
    await gatewayOfNewFlows(await others());
    await transfers.goOn();
    // Where the only other one does not answer for a moment, new flows go back to that which is deleted.
    await gatewaysReady(PICKED);
    await gatewayOfNewFlows(await others());
    await transfers.goOn();
    await transfers.stop();
  });

  async function change(spec: object): Promise<void> {
    const target = ["egress", PICKED.name, "-n", PICKED.namespace];
    await kubectl.run(["patch", ...target, "--type=merge", "-p", JSON.stringify({ spec })]);
  }

  /** Does something while keeper's node reaches neither programs nor tunnels at addresses of gateways. */
  async function whileLost(addresses: readonly string[], work: () => Promise<void>): Promise<void> {
    const lost = addresses.map((address) => {
      const family = address.includes(":") ? "ip6" : "ip";
      return `${family} daddr ${address} udp dport { ${FOU_PORT}, ${HEARTBEAT_PORT} }`;
    });
    await whileDropping(await nodeOf(keeper), ["prerouting", "output"], lost, work);
  }

  /** Does something while a node drops what a hook of its kernel sees of some packets. */
  async function whileDropping(
    node: NodeShell,
    hooks: readonly string[],
    packets: readonly string[],
    work: () => Promise<void>,
  ): Promise<void> {
    const chains = hooks.flatMap((hook) => [
      `add chain inet e2e_lost ${hook} { type filter hook ${hook} priority -300; }`,
      ...packets.map((each) => `add rule inet e2e_lost ${hook} ${each} drop`),
    ]);
    await node.run(`nft 'add table inet e2e_lost\n${chains.join("\n")}'`);
    try {
      await work();
    } finally {
      await node.run("nft delete table inet e2e_lost");
    }
  }

  /** What the status has of a gateway. */
  async function statusOf({ name }: PlacedPod): Promise<GatewayStatus> {
    const path = `{.status.gateways[?(@.name=="${name}")]}`;
    const shown = await kubectl.run([
      ...["get", "egress", PICKED.name, "-n", PICKED.namespace],
      `-o=jsonpath=${path}`,
    ]);
    return GatewayStatus.parse(JSON.parse(shown));
  }

  /** Names of the tunnel links that new flows of keeper take, one for each family. */
  async function links(): Promise<string[]> {
    const { ipv4, ipv6 } = internet.wide;
    const node = await nodeOf(keeper);
    const routes = await node.inNetworkOf(keeper.ipv4, `ip route get ${ipv4}\nip route get ${ipv6}`);
    return [...routes.matchAll(/ dev (\S+)/g)].map(([, link = ""]) => link);
  }

  async function linksOfNewFlows(are: (links: readonly string[]) => boolean): Promise<void> {
    await waitUntil(async () => are(await links()), {
      what: "new flows of keeper to take other links",
      timeoutMs: 30_000,
      intervalMs: 500,
    });
  }

  /** From which addresses servers see new flows come. */
  async function seen(): Promise<string[]> {
    return (await keeper.seenBy(outside)).flatMap(({ tcp, udp }) => [tcp, udp]);
  }

  /** Waits until new flows of both families and protocols use one gateway, and a wanted one. */
  function gatewayOfNewFlows(
    gateways: readonly PlacedPod[],
    isWanted: (gateway: PlacedPod) => boolean = () => true,
  ): Promise<PlacedPod> {
    const wanted = gateways.filter(isWanted);
    const used = async () => {
      const addresses = await seen();
      return wanted.find((gateway) => addresses.every((address) => addressesOf(gateway).includes(address)));
    };
    return waitUntil(used, {
      what: "new flows of keeper to use one gateway",
      timeoutMs: 30_000,
      intervalMs: 500,
    });
  }
});
