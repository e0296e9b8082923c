import { describe, expect, it } from "vitest";
import type { Pulse } from "../gateways/pulse.ts";
import type { HeardGateway } from "../gateways/selection.ts";
import type { EgressView, StoredEgress } from "../gateways/view.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress, notUnderstood } from "../testing/egress.ts";
import { gateway } from "../testing/gateway.ts";
import { clientConfig, recordEgress, refusedEgresses } from "./configuration.ts";

const READY = gateway({ addresses: ["10.244.1.7", "fd00:244:1::7"] });
const DRAINING = gateway({ name: "nat-2", addresses: ["10.244.1.8"], ready: false, terminating: true });
const DEAD = gateway({ name: "nat-3", addresses: ["10.244.1.9"], ready: false, serving: false });

const CLUSTER_RANGES = ["10.96.0.0/16"];

function viewOf(
  object: StoredEgress | undefined,
  gateways: readonly HeardGateway[],
  vanished: readonly HeardGateway[] = [],
): EgressView {
  return {
    egress: () => object,
    gateways: () => gateways,
    knowsGateways: () => true,
    hasEgressIn: () => true,
    vanishedGateways: () => vanished,
    pulse: (address) =>
      [...gateways, ...vanished].find(({ addresses }) => addresses.includes(address))?.pulse ?? "unknown",
    place: { nodeName: "node", zone: undefined },
    clusterRanges: CLUSTER_RANGES,
  };
}

const BOUNDED = { allowedNamespaces: { matchLabels: { egress: "allowed" } } };

describe("a client's configuration", () => {
  it("sends to the Service, and takes from it and from every gateway that may still send", () => {
    const object = egress(
      {
        destinations: ["0.0.0.0/0", "::/0"],
        excludedDestinations: ["192.0.2.0/24"],
        fouSourcePortAuto: true,
        originatingOnly: false,
      },
      ["10.96.0.10", "fd00:96::10"],
    );
    const config = clientConfig(clientRecord(), viewOf(object, [READY, DRAINING, DEAD]));
    expect(config).toEqual({
      uplink: "eth0",
      clusterRanges: CLUSTER_RANGES,
      egresses: [
        {
          name: "internet/nat",
          destinations: ["0.0.0.0/0", "::/0"],
          excluded: ["192.0.2.0/24"],
          gateways: [
            { ipv4: "10.96.0.10", ipv6: "fd00:96::10" },
            { ipv4: "10.96.0.10", ipv6: "fd00:96::10", flows: "existing" },
            ...["10.244.1.7", "10.244.1.8", "10.244.1.9"].map((ipv4) => ({ ipv4, flows: "existing" })),
            { ipv6: "fd00:244:1::7", flows: "existing" },
          ],
          peers: ["10.244.1.7", "10.244.1.8", "10.244.1.9", "10.96.0.10", "fd00:244:1::7", "fd00:96::10"],
          port: 5555,
          sourcePortAuto: true,
          originatingOnly: false,
        },
      ],
    });
  });

  it.each<[Pulse, boolean]>([
    ["unknown", true],
    ["stranded", true],
    ["suspect", false],
    ["dead", false],
  ])(
    "keeps flows of a gateway that the API names no longer while it may be there: %s, %s",
    (pulse, isKept) => {
      const object = egress({ gatewaySelection: "Agent" }, ["10.96.0.10"]);
      const record = clientRecord({ egresses: [recordEgress(object)] });
      const vanished = gateway({
        name: "nat-4",
        addresses: ["10.244.1.10"],
        ready: false,
        serving: false,
        pulse,
      });
      const config = clientConfig(record, viewOf(object, [READY], [vanished]));
      const kept = { ipv4: "10.244.1.10", flows: "existing" };
      expect(config.egresses[0]?.gateways.filter(({ ipv4 }) => ipv4 === kept.ipv4)).toEqual(
        isKept ? [kept] : [],
      );
      expect(config.egresses[0]?.peers.includes(kept.ipv4)).toBe(isKept);
    },
  );

  describe("of two Egresses that name one address, because it has moved", () => {
    const moved = gateway({ addresses: ["10.244.1.10"] });
    const addressesWith = (partners: object, view: Partial<EgressView>) => {
      const nat = egress({ gatewaySelection: "Agent" }, []);
      const other = egress(partners, ["10.96.0.11"]);
      const objects = [nat, { ...other, metadata: { ...other.metadata, name: "partners" } }];
      const record = clientRecord({ egresses: objects.map(recordEgress) });
      const config = clientConfig(record, {
        ...viewOf(undefined, []),
        egress: ({ name }) => objects.find(({ metadata }) => metadata.name === name),
        gateways: ({ name }) => (name === "nat" ? [READY] : [moved, DRAINING]),
        pulse: () => "alive",
        ...view,
      });
      return config.egresses.map(({ gateways }) => [...new Set(gateways.flatMap(({ ipv4 = [] }) => ipv4))]);
    };
    const agent = { gatewaySelection: "Agent" };

    it.each<[string, Partial<EgressView>]>([
      ["was named until a moment ago", { vanishedGateways: ({ name }) => (name === "nat" ? [moved] : []) }],
      ["is named still", { gateways: ({ name }) => (name === "nat" ? [READY, moved] : [moved, DRAINING]) }],
    ])("leads nothing there while it %s, so that flows are ended", (_, view) => {
      expect(addressesWith(agent, view)).toEqual([["10.244.1.7"], ["10.244.1.8", "10.96.0.11"]]);
    });

    it("leads to the Service all the same", () => {
      const view: Partial<EgressView> = {
        gateways: ({ name }) => (name === "nat" ? [READY] : [moved]),
        vanishedGateways: ({ name }) => (name === "nat" ? [moved] : []),
      };
      expect(addressesWith({}, view)).toEqual([["10.244.1.7"], ["10.96.0.11"]]);
    });
  });

  it("keeps them also where no gateway is heard: it may be this node that hears nothing", () => {
    const object = egress({ gatewaySelection: "Agent" }, ["10.96.0.10"]);
    const record = clientRecord({ egresses: [recordEgress(object)] });
    const all = ["10.244.1.10", "10.244.1.11"].map((address) =>
      gateway({ addresses: [address], ready: false, serving: false, pulse: "dead" }),
    );
    const config = clientConfig(record, viewOf(object, [], all));
    expect(config.egresses[0]?.gateways.slice(0, 2)).toEqual(
      ["10.244.1.10", "10.244.1.11"].map((ipv4) => ({ ipv4, flows: "existing" })),
    );
  });

  it("has no gateway in a family in which none serves: it fails closed", () => {
    const object = egress({}, ["10.96.0.10", "fd00:96::10"]);
    const config = clientConfig(clientRecord(), viewOf(object, [DRAINING]));
    expect(config.egresses[0]?.gateways[0]).toEqual({ ipv4: "10.96.0.10" });
  });

  it("has no gateway of an Egress that its namespace may not use: it fails closed", () => {
    const object = egress(BOUNDED, undefined, { allowedNamespaces: ["payments"] });
    const record = clientRecord();
    const view = viewOf(object, [READY]);
    expect(clientConfig(record, view).egresses[0]).toMatchObject({
      destinations: ["0.0.0.0/0"],
      gateways: [{}],
      peers: [],
    });
    expect(refusedEgresses(record, view)).toEqual(["internet/nat"]);
  });

  it("is as before where its Egress is not understood any more: it goes on", () => {
    const spec = { destinations: ["192.0.2.0/24"] };
    const record = clientRecord({ egresses: [recordEgress(egress(spec))] });
    const before = clientConfig(record, viewOf(egress(spec), [READY]));
    const view = viewOf(notUnderstood(), [READY]);
    expect(clientConfig(record, view)).toEqual(before);
    expect(refusedEgresses(record, view)).toEqual([]);

    const revoked = viewOf(notUnderstood({ allowedNamespaces: ["payments"] }), [READY]);
    expect(clientConfig(record, revoked).egresses[0]).toMatchObject({ gateways: [{}], peers: [] });
  });

  it("guards what was last known of an Egress that is gone", () => {
    const spec = { destinations: ["192.0.2.0/24"], excludedDestinations: ["192.0.2.128/25"] };
    const record = clientRecord({ egresses: [recordEgress(egress(spec))] });
    const config = clientConfig(record, viewOf(undefined, []));
    expect(config.egresses[0]).toMatchObject({
      destinations: spec.destinations,
      excluded: spec.excludedDestinations,
      gateways: [{}],
      peers: [],
    });
  });
});
