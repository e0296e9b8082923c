import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, expect, test } from "vitest";
import type { PlacedPod } from "../bed/workload/gateways.ts";
import { WHOAMI_PORT } from "../bed/workload/probe-pod.ts";
import { lateArrivals, uniqueText } from "./kit/evidence.ts";
import { addressesOf } from "./kit/internet.ts";
import { INTERNET_EGRESS } from "./kit/names.ts";
import { Transfers } from "./kit/transfers.ts";
import { describeOnline, gatewaysOf, gatewaysReady, kubectl, nodeOf, player } from "./kit/world.ts";

/** What each backend leaves in the network namespace of a gateway: a table, or qdiscs, chains and sets. */
const TRACES = { nftables: ["egress_nat_gateway"], iptables: ["clsact", "-j EN-", "en-clients"] } as const;
type Backend = keyof typeof TRACES;

const LIST_TRACES = `{
  nft list tables; ipset list -n; tc qdisc show
  for program in iptables-nft ip6tables-nft iptables-legacy ip6tables-legacy; do $program-save; done
} 2>/dev/null || true`;

describeOnline("gateways that change to iptables and back", (internet) => {
  let transfers: Transfers;

  afterAll(() => change("nftables"));

  test("let clients through with the address of a gateway, and nobody else", async () => {
    const [alice, mallory] = await Promise.all([player("alice"), player("mallory")]);
    transfers = await Transfers.start(internet, [alice]);
    const gateways = await change("iptables");
    const [v4, v6] = await alice.seenBy(addressesOf(internet.wide));
    expect(gateways.map(({ ipv4 }) => ipv4)).toContain(v4?.tcp);
    expect(gateways.map(({ ipv6 }) => ipv6)).toContain(v6?.tcp);
    expect({ v4: v4?.udp, v6: v6?.udp }).toEqual({ v4: v4?.tcp, v6: v6?.tcp });

    const text = uniqueText("backend");
    await mallory.ask(
      gateways.flatMap((gateway) =>
        (["ipv4", "ipv6"] as const).map((family) => ({
          do: "fou" as const,
          ...{ via: gateway[family], source: mallory[family], destination: internet.wide[family] },
          ...{ port: WHOAMI_PORT, text },
        })),
      ),
    );
    await lateArrivals(mallory, internet);
    expect(await internet.sendersOf(text)).toEqual([]);
  });

  test("keep the flows that they have, and nothing of the one before", async () => {
    await transfers.goOn();
    await change("nftables");
    await transfers.goOn();
    await transfers.stop();
  });

  /** @returns the gateways, which are those of before, when each holds what the backend makes and nothing else */
  async function change(backend: Backend): Promise<readonly PlacedPod[]> {
    const before = await gatewaysOf(INTERNET_EGRESS);
    await choose(backend);
    for (const gateway of before) {
      await waitUntil(async () => (await tracesIn(gateway)).join() === TRACES[backend].join(), {
        what: `gateway ${gateway.name} to have the ways of ${backend} and no others`,
        timeoutMs: 90_000,
        intervalMs: 1000,
        explain: async () => (await tracesIn(gateway)).join(),
      });
    }
    await gatewaysReady(INTERNET_EGRESS);
    expect(await gatewaysOf(INTERNET_EGRESS)).toEqual(before);
    return before;
  }

  async function choose(natBackend: Backend): Promise<void> {
    const { namespace, name } = INTERNET_EGRESS;
    const patch = JSON.stringify({ spec: { natBackend } });
    await kubectl.run(["patch", "egress", name, "-n", namespace, "--type=merge", "-p", patch]);
  }

  async function tracesIn(gateway: PlacedPod): Promise<readonly string[]> {
    const listed = await (await nodeOf(gateway)).inNetworkOf(gateway.ipv4, LIST_TRACES);
    const all = Object.values(TRACES).flat();
    return all.filter((trace) => listed.includes(trace));
  }
});
