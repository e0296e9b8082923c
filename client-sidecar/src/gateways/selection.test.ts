import { describe, expect, test } from "vitest";
import { gateway } from "../testing/gateway.ts";
import type { Pulse } from "./pulse.ts";
import { clientGateways, type HeardGateway, inEachFamily, type Selection } from "./selection.ts";

const A = gateway({ name: "a", addresses: ["10.244.1.1", "fd00:244:1::1"] });
const B = gateway({ name: "b", addresses: ["10.244.1.2", "fd00:244:1::2"] });
const C = gateway({ name: "c", addresses: ["10.244.1.3", "fd00:244:1::3"] });
const leaving = (one: HeardGateway): HeardGateway => ({ ...one, ready: false, terminating: true });
const SERVICE = ["10.96.0.10", "fd00:96::10"];
const clients = Array.from({ length: 20 }, (_, index) => `client-${index}`);

function gatewaysOf(changes: Partial<Selection> & { selection?: "Service" | "Agent"; affinity?: "None" }) {
  const { selection: gatewaySelection = "Agent", affinity: sessionAffinity = "ClientIP", ...rest } = changes;
  return clientGateways({
    policy: { gatewaySelection, sessionAffinity },
    serviceIPs: SERVICE,
    gateways: [A, B, C],
    moving: new Set(),
    place: { nodeName: "node", zone: undefined },
    client: "client",
    ...rest,
  });
}

/** Addresses that new flows begin with. */
function picked(changes: Parameters<typeof gatewaysOf>[0]): string[] {
  return gatewaysOf(changes)
    .filter(({ flows }) => flows === undefined)
    .flatMap(({ ipv4 = [], ipv6 = [] }) => [ipv4, ipv6].flat());
}

describe("with the selection of the Service", () => {
  test("flows begin with it, and those that an agent has given to gateways stay there", () => {
    expect(gatewaysOf({ selection: "Service", gateways: [A] })).toEqual([
      { ipv4: "10.96.0.10", ipv6: "fd00:96::10" },
      { ipv4: "10.96.0.10", ipv6: "fd00:96::10", flows: "existing" },
      { ipv4: "10.244.1.1", flows: "existing" },
      { ipv6: "fd00:244:1::1", flows: "existing" },
    ]);
  });

  test("a family without a gateway has none", () => {
    const only4 = gateway({ addresses: ["10.244.1.1"] });
    expect(picked({ selection: "Service", gateways: [only4] })).toEqual(["10.96.0.10"]);
  });
});

test("flows stay with the Service while nobody serves behind it", () => {
  const existing = { ipv4: "10.96.0.10", ipv6: "fd00:96::10", flows: "existing" };
  for (const selection of ["Service", "Agent"] as const) {
    expect(gatewaysOf({ selection, gateways: [] }).at(selection === "Service" ? 1 : -1)).toEqual(existing);
    expect(picked({ selection, gateways: [] })).toEqual([]);
  }
});

describe("with the selection of the agent", () => {
  test("flows begin with one gateway, the same of both families, and those of the Service stay there", () => {
    const gateways = gatewaysOf({ gateways: [A, B] });
    const [owner] = picked({ gateways: [A, B] }).includes("10.244.1.1") ? [A] : [B];
    expect(picked({ gateways: [A, B] })).toEqual(owner?.addresses);
    expect(gateways.at(-1)).toEqual({ ipv4: "10.96.0.10", ipv6: "fd00:96::10", flows: "existing" });
    const [spare] = owner === A ? [B] : [A];
    expect(gateways.filter(({ flows }) => flows === "spare")).toEqual([
      { ipv4: spare.addresses[0], flows: "spare" },
      { ipv6: spare.addresses[1], flows: "spare" },
    ]);
  });

  test("the spare one is that with which flows begin once theirs is gone", () => {
    for (const client of clients) {
      const [owner] = picked({ client });
      const spare = gatewaysOf({ client }).flatMap(({ flows, ipv4 }) =>
        flows === "spare" ? (ipv4 ?? []) : [],
      );
      const rest = [A, B, C].filter(({ addresses }) => addresses[0] !== owner);
      expect(spare).toEqual([picked({ client, gateways: rest })[0]]);
    }
  });

  test("one that does not answer is no spare one, and keeps the flows that it has", () => {
    for (const pulse of ["suspect", "stranded"] as const) {
      const flows = gatewaysOf({ gateways: [A, { ...B, pulse }] }).flatMap(({ ipv4, flows = "new" }) =>
        ipv4 === undefined ? [] : [`${ipv4} ${flows}`],
      );
      expect(flows).toEqual(["10.244.1.1 new", "10.244.1.2 existing", "10.96.0.10 existing"]);
    }
  });

  test("without affinity there is none that would be spare", () => {
    expect(gatewaysOf({ affinity: "None" }).some(({ flows }) => flows === "spare")).toBe(false);
  });

  test("clients are spread, and each stays where it is when another gateway comes or goes", () => {
    const of = (gateways: readonly HeardGateway[]) =>
      clients.map((client) => picked({ client, gateways })[0]);
    expect(new Set(of([A, B, C])).size).toBe(3);
    const moved = of([A, B, C]).filter((address, index) => address !== of([A, B])[index]);
    expect(new Set(moved)).toEqual(new Set([C.addresses[0]]));
  });

  test("without affinity flows begin with any that is ready", () => {
    expect(picked({ affinity: "None", gateways: [A, leaving(B), C] }).sort()).toEqual(
      [A, C].flatMap(({ addresses }) => addresses).sort(),
    );
  });

  test("without affinity a client uses 32 gateways at most, the same of both families, and not all clients the same", () => {
    const many = Array.from({ length: 130 }, (_, index) =>
      gateway({ name: `${index}`, addresses: [`10.244.2.${index}`, `fd00:244:2::${index}`] }),
    );
    const of = (client: string) => picked({ affinity: "None", gateways: many, client });
    const of4 = of("client").filter((address) => address.startsWith("10."));
    const of6 = of("client").filter((address) => address.startsWith("fd00"));
    expect(of4).toHaveLength(32);
    expect(of6.map((address) => address.replace("fd00:244:2::", "10.244.2."))).toEqual(of4);
    expect(new Set(clients.flatMap(of)).size).toBeGreaterThan(200);
  });

  test.each<[string, readonly HeardGateway[], readonly HeardGateway[]]>([
    ["one that terminates keeps its flows and gets no new ones", [A, leaving(B)], [A]],
    ["the last one that terminates gets new ones all the same", [leaving(B)], [B]],
    ["one that does not answer the heartbeat gets no new ones", [A, { ...B, pulse: "suspect" }], [A]],
    ["where none answers all get new ones: the heartbeat is what fails", [{ ...B, pulse: "suspect" }], [B]],
    ["nor does one that has lost its way out", [A, { ...B, pulse: "stranded" }], [A]],
    ["where all have, the addresses that they ask are what fails", [{ ...B, pulse: "stranded" }], [B]],
    ["a dead one gets none", [A, { ...B, pulse: "dead" }], [A]],
    ["where all seem dead it is this node that hears nothing", [{ ...B, pulse: "dead" }], [B]],
    [
      "one that terminates takes the place of a ready one that does not answer",
      [leaving(A), { ...B, pulse: "suspect" }],
      [A],
    ],
  ])("%s", (_, gateways, expected) => {
    expect(picked({ gateways })).toEqual(expected.flatMap(({ addresses }) => addresses));
  });

  test("a dead one keeps its flows where nobody is heard, but gets no new ones while another may live", () => {
    const gateways = [
      { ...A, pulse: "dead" },
      { ...B, pulse: "suspect" },
    ] as const;
    expect(picked({ gateways })).toEqual(B.addresses);
    expect(gatewaysOf({ gateways })).toContainEqual({ ipv4: "10.244.1.1", flows: "existing" });
  });

  describe("one that the node reaches in one family only", () => {
    const [v4, v6] = A.addresses;
    const inIPv4 = (pulse: Pulse) =>
      inEachFamily([A, B], { pulse: (address) => (address === v6 ? pulse : "alive") });

    test("gets new flows of it, and none of the other", () => {
      const owned = clients.filter((client) => picked({ client, gateways: [A, B] })[0] === v4);
      expect(owned.length).toBeGreaterThan(0);
      for (const client of owned) {
        expect(picked({ client, gateways: inIPv4("suspect") })).toEqual([v4, B.addresses[1]]);
      }
      expect(picked({ affinity: "None", gateways: inIPv4("suspect") }).sort()).toEqual(
        [v4, ...B.addresses].toSorted(),
      );
    });

    test("keeps the flows of the other that it has", () => {
      const gateways = gatewaysOf({ affinity: "None", gateways: inIPv4("suspect") });
      expect(gateways).toContainEqual({ ipv6: v6, flows: "existing" });
    });

    test("gets those of both where the node hears no gateway in the other", () => {
      const gateways = inEachFamily([A, B], {
        pulse: (address) => (address.includes(":") ? "suspect" : "alive"),
      });
      expect(picked({ affinity: "None", gateways }).sort()).toEqual(
        [...A.addresses, ...B.addresses].toSorted(),
      );
    });
  });

  test("one that nobody has heard of yet gets new flows, and is no sign that others are dead", () => {
    const unheard = { ...C, pulse: "unknown" } as const;
    expect(picked({ affinity: "None", gateways: [A, unheard] }).sort()).toEqual(
      [A, C].flatMap(({ addresses }) => addresses).sort(),
    );
    const [deadA, deadB] = [A, B].map((gateway) => ({ ...gateway, pulse: "dead" }) as const);
    const gateways = [deadA, deadB, { ...unheard, ready: false, serving: false }].filter(
      (gateway) => gateway !== undefined,
    );
    expect(gatewaysOf({ gateways }).flatMap(({ ipv4 = [] }) => ipv4)).toEqual(
      expect.arrayContaining([A.addresses[0], B.addresses[0]]),
    );
    expect(picked({ gateways })).toHaveLength(2);
  });

  test("a dead one keeps no flow: it is not named", () => {
    const addresses = gatewaysOf({ gateways: [A, { ...B, pulse: "dead" }] }).flatMap(({ ipv4 = [] }) => ipv4);
    expect(addresses).toEqual(["10.244.1.1", "10.96.0.10"]);
  });
});
