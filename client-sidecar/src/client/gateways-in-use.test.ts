import { expect, test } from "vitest";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { gateway } from "../testing/gateway.ts";
import { recordEgress } from "./configuration.ts";
import { gatewaysInUse, namedGatewaysInUse, probeGateway } from "./gateways-in-use.ts";

const NAMED = gateway({ name: "nat-1", addresses: ["10.244.1.7"] });

function use(spec: object, vanished: Parameters<typeof gateway>[0] = {}) {
  const object = egress(spec);
  const record = clientRecord({ egresses: [recordEgress(object)] });
  const registry = { values: () => [record, { ...record, containerId: "other" }] };
  const view = {
    egress: () => object,
    gateways: () => [NAMED],
    vanishedGateways: () => [gateway({ name: "nat-2", addresses: ["10.244.1.8"], ...vanished })],
  };
  return [gatewaysInUse(registry, view), namedGatewaysInUse(registry, view)].map((gateways) =>
    gateways.map(({ name }) => name),
  );
}

test("each gateway of an Egress that leaves the pick to the agent is in use once, whether the API still names it or not", () => {
  expect(use({ gatewaySelection: "Agent" })).toEqual([["nat-1", "nat-2"], ["nat-1"]]);
});

test("where the Service picks, none is", () => {
  expect(use({ gatewaySelection: "Service" })).toEqual([[], []]);
});

test.each(["suspect", "dead"] as const)(
  "one that the API names no longer is listened to although it is %s: else it would be unknown again, and take flows",
  (pulse) => {
    expect(use({ gatewaySelection: "Agent" }, { pulse })[0]).toEqual(["nat-1", "nat-2"]);
  },
);

test("one that the API names no longer in one family is one gateway still: what is heard of it counts for both", () => {
  const object = egress({ gatewaySelection: "Agent" });
  const registry = { values: () => [clientRecord({ egresses: [recordEgress(object)] })] };
  const view = {
    egress: () => object,
    gateways: () => [NAMED],
    // Its sandbox was made anew: the second is not its own any more.
    vanishedGateways: () =>
      ["fd00:244:1::7", "10.244.1.6"].map((address) => gateway({ name: "nat-1", addresses: [address] })),
  };
  expect(gatewaysInUse(registry, view).map(({ addresses }) => addresses)).toEqual([
    ["10.244.1.7", "fd00:244:1::7"],
    ["10.244.1.6"],
  ]);
});

test("a kernel is asked by three clients where there are as many, whoever is of another namespace", async () => {
  const clients = ["one", "other", "third"].map((name) =>
    clientRecord({
      ...{ netns: name, containerId: name },
      pod: { namespace: name === "third" ? "elsewhere" : "here", name, uid: name },
    }),
  );
  for (let time = 0; time < 20; time += 1) {
    const asked: string[] = [];
    const networks = {
      hasTunnel: () => true,
      probeGateway: async (netns: string) => {
        asked.push(netns);
        return false;
      },
    };
    await probeGateway({ ofEgress: () => clients }, networks, egress({}).metadata, "192.0.2.1");
    expect(asked.toSorted()).toEqual(["one", "other", "third"]);
  }
});

test("a kernel is asked through tunnels to that address, by clients that have one", async () => {
  const clients = ["with", "without"].map((netns) => clientRecord({ netns, containerId: netns }));
  const asked: string[] = [];
  const networks = {
    hasTunnel: (netns: string, address: string) => netns === "with" || !address.includes(":"),
    probeGateway: async (netns: string, address: string) => {
      asked.push(`${netns} ${address}`);
      return netns === "with";
    },
  };
  const registry = { ofEgress: () => clients };
  const probe = (address: string) => probeGateway(registry, networks, egress({}).metadata, address);
  expect(await probe("2001:db8::1")).toBe(true);
  expect(asked).toEqual(["with 2001:db8::1"]);
  expect(await probe("192.0.2.1")).toBe(true);
  networks.hasTunnel = () => false;
  expect(await probe("192.0.2.1")).toBeUndefined();
});
