import { setTimeout as sleep } from "node:timers/promises";
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
/** Whether new flows take other ways is asked here; how soon is what `npm run chaos` and `npm run bench` measure. */
const PATIENCE = { timeoutMs: 90_000, intervalMs: 500 };
/** Longer than programs of emulated nodes stand still. */
const LONGER_THAN_A_STALL_MS = 10_000;
const PICKED = { namespace: INTERNET_EGRESS.namespace, name: "picked" };

const object = egress(PICKED, { destinations: ["0.0.0.0/0", "::/0"], replicas: 2 });
const pod = probePod(client("keeper", PICKED));

describeOnline("the flows of a client whose gateways the agent picks", (internet) => {
  const outside = addressesOf(internet.wide);
  let keeper: ProbePod;
  let transfers: Transfers;
  /** Links of the Service's addresses. */
  let byService: readonly string[];
  /** That which the agent picks for keeper while both answer. */
  let own: PlacedPod;
  let other: PlacedPod;

  beforeAll(async () => {
    await kubectl.apply(object);
    await gatewaysReady(PICKED);
    await kubectl.apply(pod);
    keeper = await ProbePod.ready(kubectl, NAMESPACE, "keeper");
    transfers = await Transfers.start(internet, [keeper]);
  });
  afterAll(() => kubectl.delete([pod, object], { wait: false }));

  test("stay when the Egress comes to have them picked by it", async () => {
    byService = await links();
    await change({ gatewaySelection: "Agent" });
    await linksOfNewFlows((now) => now.every((link) => !byService.includes(link)));
    await transfers.goOn();
    [own, other] = await ownAndOther();
  });

  test("stay when the Egress leaves the pick to the Service, and when it takes it back", async () => {
    await newTransfers();
    await change({ gatewaySelection: "Service" });
    await linksOfNewFlows((now) => isDeepStrictEqual(now, byService));
    // kube-proxy picks for each family by itself.
    await newFlowsUse(addressesOf(own, other));
    await transfers.goOn();
    await change({ gatewaySelection: "Agent" });
    await linksOfNewFlows((now) => now.every((link) => !byService.includes(link)));
    await newFlowsUse(addressesOf(own));
    await transfers.goOn();
  });

  test("stay with a gateway whose program stands still, while new ones go to the other, and come back", async () => {
    await newTransfers();
    await whilePaused(PICKED.namespace, own.name, async () => {
      await newFlowsUse(addressesOf(other));
      await transfers.goOn();
    });
    await newFlowsUse(addressesOf(own));
    await transfers.goOn();
  });

  test("begin elsewhere over IPv6 while their node reaches theirs over IPv4 only, and come back", async () => {
    await whileLost([own.ipv6], async () => {
      await newFlowsUse([own.ipv4, other.ipv6]);
      await expect.poll(() => statusOf(own), TOLD).toMatchObject({ state: "Suspect" });
    });
    await newFlowsUse(addressesOf(own));
  });

  test("stay with one that has lost its way out, while new ones go to the other, and come back", async () => {
    const { ipv4, ipv6 } = internet.wide;
    const node = await nodeOf(own);
    await newTransfers();
    await change({ uplinkProbe: { targets: [ipv4, ipv6] } });
    const lost = [
      `ip saddr ${own.ipv4} ip daddr ${ipv4} icmp type echo-request`,
      `ip6 saddr ${own.ipv6} ip6 daddr ${ipv6} icmpv6 type echo-request`,
    ];
    await whileDropping(node, ["forward"], lost, async () => {
      await newFlowsUse(addressesOf(other));
      await transfers.goOn();
      const reason = expect.stringMatching(/^uplink: no answer from/);
      await expect.poll(() => statusOf(own), TOLD).toMatchObject({ state: "Down", reason });
    });
    await newFlowsUse(addressesOf(own));
    await transfers.goOn();
  });

  test("are reset where their node reaches their gateway no more, and the status says so", async () => {
    await newTransfers();
    await whileLost(addressesOf(own), async () => {
      await newFlowsUse(addressesOf(other));
      await transfers.break();
      const dead = { state: "Down", reason: "no answer through the tunnel", reportedBy: keeper.node };
      await expect.poll(() => statusOf(own), TOLD).toMatchObject(dead);
    });
    await newFlowsUse(addressesOf(own));
    await expect.poll(() => statusOf(own), TOLD).toMatchObject({ state: "Ready" });
  });

  test("stay with a gateway that is deleted, and new ones all go elsewhere", async () => {
    await newTransfers();
    await kubectl.run(["delete", "pod", own.name, "-n", PICKED.namespace, "--wait=false"]);
    const others = async () => addressesOf(...(await gatewaysOf(PICKED)));
    await newFlowsUse(others);
    await transfers.goOn();
    // Where the only other one does not answer for a moment, new flows go back to that which is deleted.
    await gatewaysReady(PICKED);
    await newFlowsUse(others);
    await transfers.goOn();
    await transfers.stop();
  });

  /** In place of the former ones, by way of keeper's own gateway. */
  async function newTransfers(): Promise<void> {
    await transfers.stop();
    await newFlowsUse(addressesOf(own));
    transfers = await Transfers.start(internet, [keeper]);
  }

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
    const what = "new flows of keeper to take other links";
    await waitUntil(async () => are(await links()), { what, ...PATIENCE });
  }

  /** From which addresses servers see new flows of both families and protocols come. */
  async function seen(): Promise<string[]> {
    return (await keeper.seenBy(outside)).flatMap(({ tcp, udp }) => [tcp, udp]);
  }

  async function newFlowsUse(
    addresses: readonly string[] | (() => Promise<readonly string[]>),
  ): Promise<void> {
    const wanted = typeof addresses === "function" ? addresses : async () => addresses;
    const areUsed = async () => {
      const [used, allowed] = await Promise.all([seen(), wanted()]);
      return used.every((address) => allowed.includes(address));
    };
    await waitUntil(areUsed, {
      what: "new flows of keeper to use other gateways",
      ...PATIENCE,
      explain: async () => `they come from ${await seen()} in place of ${await wanted()}`,
    });
  }

  /** A look may find one that answers in place of one that does not for a moment: two looks have to find the same. */
  async function ownAndOther(): Promise<[PlacedPod, PlacedPod]> {
    const [a, b] = await gatewaysOf(PICKED);
    if (a === undefined || b === undefined) return expect.fail("there are no two gateways");
    const used = async () => {
      const addresses = new Set(await seen());
      return [a, b].find((gateway) => [...addresses].every((each) => addressesOf(gateway).includes(each)));
    };
    const usedForLong = async () => {
      const before = await used();
      await sleep(LONGER_THAN_A_STALL_MS);
      return before !== undefined && before === (await used()) && before;
    };
    const own = await waitUntil(usedForLong, { what: "new flows of keeper to use one gateway", ...PATIENCE });
    return own === a ? [a, b] : [b, a];
  }
});
