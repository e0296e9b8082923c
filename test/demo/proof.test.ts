import { describe, expect, it } from "vitest";
import { prove, type Witness } from "./proof.ts";

const gateway = { name: "nat-1", node: "node2", ipv4: "10.244.1.5", ipv6: "fd00::1:5" };
const client: Witness = {
  name: "client-1",
  node: "node1",
  ipv4: "10.244.0.7",
  ipv6: "fd00::7",
  isClient: true,
  seenAs: {
    ipv4: { tcp: gateway.ipv4, udp: gateway.ipv4 },
    ipv6: { tcp: gateway.ipv6, udp: gateway.ipv6 },
  },
};

describe("the demo's proof", () => {
  it("holds when a client is seen with the address of a gateway", () => {
    expect(prove([client], [gateway])).toEqual({
      rows: [
        { pod: "client-1", node: "node1", gateway: "nat-1 on node2", address: "10.244.1.5" },
        { pod: "client-1", node: "node1", gateway: "nat-1 on node2", address: "fd00::1:5" },
      ],
      statements: [
        ["client-1", "ipv4 TCP", "10.244.1.5"],
        ["client-1", "ipv4 UDP", "10.244.1.5"],
        ["client-1", "ipv6 TCP", "fd00::1:5"],
        ["client-1", "ipv6 UDP", "fd00::1:5"],
      ],
      faults: [],
    });
  });

  it("fails when a client is seen with its own address", () => {
    const leaking = { ...client, seenAs: { ...client.seenAs, ipv6: { tcp: "fd00::7", udp: "fd00::7" } } };
    expect(prove([leaking], [gateway]).faults).toEqual([
      "client-1 is a client and is seen as fd00::7, which is no gateway's address",
    ]);
  });

  it("fails when a pod that is no client is seen with the address of a gateway", () => {
    const { faults } = prove([{ ...client, isClient: false }], [gateway]);
    expect(faults).toHaveLength(2);
  });

  it("fails when a client is not seen at all", () => {
    const cut = { ...client, seenAs: { ...client.seenAs, ipv4: { tcp: "timeout", udp: "timeout" } } };
    expect(prove([cut], [gateway]).faults).toHaveLength(1);
  });
});
