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
  example: { command: "kubectl exec client-1 -- curl", answer: gateway.ipv4 },
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
      examples: [client.example],
      faults: [],
    });
  });

  it("shows a client and a bystander, each by a command that can be typed", () => {
    const seenAs = {
      ipv4: { tcp: client.ipv4, udp: client.ipv4 },
      ipv6: { tcp: client.ipv6, udp: client.ipv6 },
    };
    const example = { command: "kubectl exec bystander -- curl", answer: client.ipv4 };
    const bystander = { ...client, name: "bystander", isClient: false, seenAs, example };
    const { examples, faults } = prove([client, { ...client, name: "client-2" }, bystander], [gateway]);
    expect(examples).toEqual([client.example, example]);
    expect(faults).toEqual([]);
  });

  it("fails when that command prints another address", () => {
    const example = { ...client.example, answer: client.ipv4 };
    expect(prove([{ ...client, example }], [gateway]).faults).toEqual([
      "kubectl exec client-1 -- curl printed 10.244.0.7, and not 10.244.1.5",
    ]);
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
    expect(prove([cut], [gateway]).faults).toHaveLength(2);
  });
});
