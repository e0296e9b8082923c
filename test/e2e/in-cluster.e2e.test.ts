import { describe, expect, test } from "vitest";
import { z } from "zod";
import { MALLORYS_SERVICE } from "./kit/cast.ts";
import { addressesOf, asItself } from "./kit/internet.ts";
import { nodeOf, player, serviceOf, world } from "./kit/world.ts";

/** Where kube-proxy tells how it works, on each node's loopback. */
const PROXY_MODE_URL = "http://127.0.0.1:10249/proxyMode";

/** Of programs in emulated nodes, which may stand still for seconds. */
const PATIENCE_S = 20;

const Resolved = z.object({ addresses: z.array(z.string()) });

// alice's Egress is for 0.0.0.0/0 and ::/0, carol's for 10.0.0.0/8 as well.
describe.each(["alice", "carol"] as const)("inside the cluster, %s", (name) => {
  test("reaches pods on both nodes with its own address", async () => {
    const [client, mallory, bob] = await Promise.all([player(name), player("mallory"), player("bob")]);
    expect(await client.seenBy(addressesOf(mallory, bob), undefined, PATIENCE_S)).toEqual([
      ...asItself(client),
      ...asItself(client),
    ]);
  });

  test("reaches Services with its own address", async () => {
    const [client, service] = await Promise.all([player(name), serviceOf(MALLORYS_SERVICE.metadata)]);
    expect(await client.seenBy(addressesOf(service), undefined, PATIENCE_S)).toEqual(asItself(client));
  });

  test("reaches nodes with its own address", async () => {
    const [client, bob, mallory] = await Promise.all([player(name), player("bob"), player("mallory")]);
    const nodes = await Promise.all([nodeOf(bob), nodeOf(mallory)]);
    const seen = await client.seenBy(addressesOf(...nodes.map(({ pod }) => pod)));
    // A node that answers a datagram to any of its addresses may do so from another one: TCP alone tells.
    expect(seen.map(({ tcp }) => tcp)).toEqual(nodes.flatMap(() => [client.ipv4, client.ipv6]));
  });

  test("resolves names by the cluster's DNS", async () => {
    const client = await player(name);
    const { name: service, namespace } = MALLORYS_SERVICE.metadata;
    const { addresses } = await client.askOne(
      { do: "resolve", name: `${service}.${namespace}.svc.cluster.local` },
      Resolved,
    );
    expect(new Set(addresses)).toEqual(new Set(addressesOf(await serviceOf(MALLORYS_SERVICE.metadata))));
  });
});

test.skipIf(world.proxyMode === undefined)(
  "Services are kube-proxy's, in the mode that was asked for",
  async () => {
    for (const name of ["alice", "bob"] as const) {
      const node = await nodeOf(await player(name));
      expect(await node.run(`curl --silent --fail ${PROXY_MODE_URL}`)).toBe(world.proxyMode);
    }
  },
);
