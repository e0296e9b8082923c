import { type ClusterRanges, EGRESS_LABEL } from "@egress-nat/crds";
import { EndpointSlice, Store } from "@egress-nat/kube";
import { beforeEach, describe, expect, it } from "vitest";
import { egress } from "../testing/egress.ts";
import { CachedEgressView } from "./cached-view.ts";
import type { StoredEgress } from "./view.ts";

const NAT = { namespace: "internet", name: "nat" };
const OWN = "service-uid";

let egresses: Store<StoredEgress>;
let endpointSlices: Store<EndpointSlice>;
let view: CachedEgressView;

beforeEach(() => {
  egresses = new Store();
  endpointSlices = new Store();
  view = new CachedEgressView(
    { egresses, endpointSlices, clusterRanges: new Store<ClusterRanges>() },
    { place: { nodeName: "node", zone: undefined }, pulse: () => "alive" },
  );
});

/** An EndpointSlice of a Service that is named like the Egress. */
function endpointSlice(serviceUID: string, addresses: readonly string[]): EndpointSlice {
  const owner = { apiVersion: "v1", kind: "Service", name: NAT.name, uid: serviceUID, controller: true };
  return EndpointSlice.parse({
    metadata: {
      ...{ namespace: NAT.namespace, name: `nat-${serviceUID}`, uid: `slice-of-${serviceUID}` },
      ...{ labels: { [EGRESS_LABEL]: NAT.name }, ownerReferences: [owner] },
    },
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  });
}

function gatewayAddresses(): string[] {
  return view.gateways(NAT).flatMap(({ addresses }) => addresses);
}

describe("the gateways of an Egress", () => {
  beforeEach(() => {
    endpointSlices.put(endpointSlice(OWN, ["192.0.2.1"]));
    endpointSlices.put(endpointSlice("other", ["192.0.2.9"]));
  });

  it("are those of the Service that its status names", () => {
    egresses.put(egress({}, undefined, { serviceUID: OWN }));
    expect(gatewayAddresses()).toEqual(["192.0.2.1"]);
  });

  it("are those of a Service of its name where an older operator has written the status", () => {
    egresses.put(egress());
    expect(gatewayAddresses()).toEqual(["192.0.2.1", "192.0.2.9"]);
  });

  it("are none while it has no Service: one of its name is somebody else's", () => {
    egresses.put(egress({}, []));
    expect(gatewayAddresses()).toEqual([]);
  });

  it("are those that are left of it when it is gone", () => {
    expect(gatewayAddresses()).toEqual(["192.0.2.1", "192.0.2.9"]);
  });
});

describe("which gateways an Egress has", () => {
  it.each<[string, StoredEgress | undefined, EndpointSlice | undefined, boolean]>([
    ["is not known without a Service", egress({}, []), endpointSlice("other", ["192.0.2.9"]), false],
    [
      "is not known while its Service has no EndpointSlice",
      egress({}, undefined, { serviceUID: OWN }),
      undefined,
      false,
    ],
    [
      "is known when that is empty, as without replicas",
      egress({}, undefined, { serviceUID: OWN }),
      endpointSlice(OWN, []),
      true,
    ],
    ["is known when it is gone, and no gateway is left", undefined, undefined, true],
  ])("%s", (_, stored, slice, isKnown) => {
    if (stored !== undefined) egresses.put(stored);
    if (slice !== undefined) endpointSlices.put(slice);
    expect(view.knowsGateways(NAT)).toBe(isKnown);
  });
});

describe("a gateway that the API names no longer", () => {
  const namesOf = () => view.vanishedGateways(NAT).map(({ addresses }) => addresses[0]);

  beforeEach(() => {
    egresses.put(egress({}, ["10.96.0.10"], { serviceUID: OWN }));
    view.onChange(() => undefined);
    endpointSlices.put(endpointSlice(OWN, ["192.0.2.1", "192.0.2.2"]));
  });

  it("is remembered for a moment, as one that takes nothing new", () => {
    endpointSlices.put(endpointSlice(OWN, ["192.0.2.1"]));
    expect(view.vanishedGateways(NAT)).toMatchObject([
      { addresses: ["192.0.2.2"], ready: false, serving: false },
    ]);
    expect(gatewayAddresses()).toEqual(["192.0.2.1"]);
  });

  it("is remembered when its Service is made anew, before the EndpointSlice of the former one is gone", () => {
    egresses.put(egress({}, ["10.96.0.10"], { serviceUID: "made-anew" }));
    expect(gatewayAddresses()).toEqual([]);
    expect(namesOf()).toEqual(["192.0.2.1", "192.0.2.2"]);
    endpointSlices.put(endpointSlice("made-anew", ["192.0.2.1"]));
    endpointSlices.remove(`${NAT.namespace}/nat-${OWN}`);
    expect(gatewayAddresses()).toEqual(["192.0.2.1"]);
    expect(namesOf()).toEqual(["192.0.2.2"]);
  });

  it("was one: those of a Service that only has the label are nothing to remember", () => {
    endpointSlices.put(endpointSlice("other", ["192.0.2.9"]));
    endpointSlices.remove(`${NAT.namespace}/nat-other`);
    expect(namesOf()).toEqual([]);
  });

  it("is remembered when its EndpointSlice is made anew, until it is there again", () => {
    endpointSlices.remove(`${NAT.namespace}/nat-${OWN}`);
    expect(namesOf()).toEqual(["192.0.2.1", "192.0.2.2"]);
    endpointSlices.put(endpointSlice(OWN, ["192.0.2.2"]));
    expect(namesOf()).toEqual(["192.0.2.1"]);
  });
});

describe("a change of an Egress", () => {
  it("is none for clients where only other clients have come, or the state of a gateway is told", () => {
    let changes = 0;
    view.onChange(() => {
      changes += 1;
    });
    const put = (status: NonNullable<StoredEgress["status"]>) =>
      egresses.put(egress({}, ["10.96.0.10"], { serviceUID: OWN, ...status }));
    put({ clients: 1 });
    put({ clients: 2, gateways: [{ name: "nat-1", addresses: [], state: "Suspect" }] });
    expect(changes).toBe(1);
    put({ clients: 2, allowedNamespaces: ["apps"] });
    expect(changes).toBe(2);
  });
});
