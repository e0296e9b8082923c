import { describe, expect, test } from "vitest";
import { CAST } from "./kit/cast.ts";
import { NAMESPACE } from "./kit/names.ts";
import { kubectl, nodeOf, player, podEvent } from "./kit/world.ts";

describe("what somebody else takes away from a client", () => {
  test("is back within seconds, and an event of the pod says so", async () => {
    const alice = await player("alice");
    const node = await nodeOf(alice);
    await node.inNetworkOf(alice.ipv4, "nft delete table inet egress_nat_client");
    const pod = { metadata: { namespace: NAMESPACE, name: CAST.alice } };
    await podEvent(pod, /repaired it: nft table egress_nat_client is missing/);
    expect(await node.inNetworkOf(alice.ipv4, "nft list tables")).toContain("egress_nat_client");
  });

  test("and nothing else is ever said to be changed", async () => {
    const options = [
      "--field-selector=reason=NetworkRepaired",
      "-o",
      "jsonpath={.items[*].involvedObject.name}",
    ];
    const repaired = await kubectl.run(["get", "events", "-n", NAMESPACE, ...options]);
    expect([...new Set(repaired.split(" "))]).toEqual([CAST.alice]);
  });
});
