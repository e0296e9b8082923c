import { afterAll, beforeAll, expect, test } from "vitest";
import type { PlacedPod } from "../workload/gateways.ts";
import type { NodeShell } from "../workload/node-shell.ts";
import type { ProbePod } from "../workload/probe-pod.ts";
import { INTERNET_EGRESS } from "./kit/names.ts";
import { describeOnline, gatewaysOf, nodeOf, player } from "./kit/world.ts";

const TABLE = "inet e2e_default_deny";

// What a NetworkPolicy with an empty ingress list amounts to, in the terms of a bridge: br_netfilter shows the packets
// between pods of one node to the forward hook as well.
describeOnline("a client whose node drops every new inbound flow to it", (internet) => {
  let alice: ProbePod;
  let mallory: ProbePod;
  let node: NodeShell;
  let gateways: readonly PlacedPod[];

  beforeAll(async () => {
    [alice, mallory] = await Promise.all([player("alice"), player("mallory")]);
    [node, gateways] = await Promise.all([nodeOf(alice), gatewaysOf(INTERNET_EGRESS)]);
    await node.run(`
      sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1
      nft -f - <<'RULES'
      table ${TABLE} {
        chain forward {
          type filter hook forward priority 10;
          ct state established,related accept
          ip daddr ${alice.ipv4} drop
          ip6 daddr ${alice.ipv6} icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
          ip6 daddr ${alice.ipv6} drop
        }
      }
RULES
      # Flows that were open before the policy say nothing about it. Gateways open some: they answer FoU of a client's own
      # making, whatever port it came from, at the tunnel's port.
      for address in ${alice.ipv4} ${alice.ipv6}; do
        conntrack -D --proto udp --orig-src $address || true
        conntrack -D --proto udp --orig-dst $address || true
      done`);
  });

  afterAll(() => node.run(`nft delete table ${TABLE}`));

  test("is closed to other pods", async () => {
    expect(await mallory.seenBy([alice.ipv4, alice.ipv6])).toEqual([
      { tcp: "timeout", udp: "timeout" },
      { tcp: "timeout", udp: "timeout" },
    ]);
  });

  test("works, v4 and v6", async () => {
    const gateway4 = expect.toBeOneOf(gateways.map(({ ipv4 }) => ipv4));
    const gateway6 = expect.toBeOneOf(gateways.map(({ ipv6 }) => ipv6));
    expect(await alice.seenBy([internet.wide.ipv4, internet.wide.ipv6])).toEqual([
      { tcp: gateway4, udp: gateway4 },
      { tcp: gateway6, udp: gateway6 },
    ]);
  });
});
