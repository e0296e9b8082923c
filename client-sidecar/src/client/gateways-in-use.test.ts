import { expect, test } from "vitest";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { gateway } from "../testing/gateway.ts";
import { recordEgress } from "./configuration.ts";
import { gatewaysInUse, namedGatewaysInUse } from "./gateways-in-use.ts";

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
