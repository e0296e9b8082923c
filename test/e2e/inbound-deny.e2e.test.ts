import { afterAll, beforeAll, expect, test } from "vitest";
import type { PlacedPod } from "../bed/workload/gateways.ts";
import { probePod } from "../bed/workload/manifests.ts";
import type { NodeShell } from "../bed/workload/node-shell.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { client, describeOnline, gatewaysOf, kubectl, nodeOf, player } from "./kit/world.ts";

const TABLE = "inet e2e_default_deny";

// What a NetworkPolicy with an empty ingress list amounts to, in the terms of a bridge: br_netfilter shows the packets
// between pods of one node to the forward hook as well.
describeOnline("a client whose node drops every new inbound flow to it", (internet) => {
  // One that no other test has sent forged packets from: gateways answer those by flows of their own.
  const manifest = probePod(client("recluse", INTERNET_EGRESS));
  let recluse: ProbePod;
  let mallory: ProbePod;
  let node: NodeShell;
  let gateways: readonly PlacedPod[];

  beforeAll(async () => {
    await kubectl.apply(manifest);
    [recluse, mallory] = await Promise.all([
      ProbePod.ready(kubectl, NAMESPACE, manifest.metadata.name),
      player("mallory"),
    ]);
    [node, gateways] = await Promise.all([nodeOf(recluse), gatewaysOf(INTERNET_EGRESS)]);
    await node.run(`
      sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1
      nft -f - <<'RULES'
      table ${TABLE} {
        chain forward {
          type filter hook forward priority 10;
          ct state established,related accept
          ip daddr ${recluse.ipv4} drop
          ip6 daddr ${recluse.ipv6} icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
          ip6 daddr ${recluse.ipv6} drop
        }
      }
RULES
      # A flow that was open before the policy says nothing about it.
      for address in ${recluse.ipv4} ${recluse.ipv6}; do
        conntrack -D --proto udp --orig-src $address || true
        conntrack -D --proto udp --orig-dst $address || true
      done`);
  });

  afterAll(async () => {
    await node.run(`nft delete table ${TABLE}`);
    await kubectl.delete([manifest], { wait: false });
  });

  test("is closed to other pods", async () => {
    expect(await mallory.seenBy([recluse.ipv4, recluse.ipv6])).toEqual([
      { tcp: "timeout", udp: "timeout" },
      { tcp: "timeout", udp: "timeout" },
    ]);
  });

  test("works, v4 and v6", async () => {
    const gateway4 = expect.toBeOneOf(gateways.map(({ ipv4 }) => ipv4));
    const gateway6 = expect.toBeOneOf(gateways.map(({ ipv6 }) => ipv6));
    const seen = await recluse.seenBy([internet.wide.ipv4, internet.wide.ipv6]);
    const flows = await node.run("conntrack -L -p udp; conntrack -L -p udp -f ipv6");
    expect(seen, flows).toEqual([
      { tcp: gateway4, udp: gateway4 },
      { tcp: gateway6, udp: gateway6 },
    ]);
  });
});
