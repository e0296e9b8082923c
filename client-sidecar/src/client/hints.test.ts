import { FAMILIES, type Family } from "@egress-nat/addresses";
import { ClusterRanges, EGRESS_LABEL } from "@egress-nat/crds";
import { EndpointSlice, Store } from "@egress-nat/kube";
import { expect, test } from "vitest";
import { CachedEgressView } from "../gateways/cached-view.ts";
import type { StoredEgress } from "../gateways/view.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { clientConfig } from "./configuration.ts";

const GATEWAYS = {
  near: { ipv4: "10.244.1.1", ipv6: "fd00:244:1::1" },
  far: { ipv4: "10.244.2.1", ipv6: "fd00:244:2::1" },
};
type Hints = Readonly<Partial<Record<keyof typeof GATEWAYS, object>>>;

/** As Kubernetes keeps it for the Service of the Egress. */
function endpointSlice(family: Family, hints: Hints): EndpointSlice {
  return EndpointSlice.parse({
    metadata: {
      ...{ namespace: "internet", name: `nat-${family}`, uid: family, labels: { [EGRESS_LABEL]: "nat" } },
      ownerReferences: [{ apiVersion: "v1", kind: "Service", name: "nat", uid: "s1", controller: true }],
    },
    endpoints: (["near", "far"] as const).map((name) => ({
      ...{ addresses: [GATEWAYS[name][family]], hints: hints[name] },
      targetRef: { kind: "Pod", name, uid: name },
    })),
  });
}

/** The gateways that flows of a client on node n1 in zone a begin with. */
function chosen(hints: Readonly<Record<Family, Hints>>): unknown[] {
  const [egresses, endpointSlices] = [new Store<StoredEgress>(), new Store<EndpointSlice>()];
  const clusterRanges = new Store<ClusterRanges>();
  const place = { nodeName: "n1", zone: "a" };
  const view = new CachedEgressView(
    { egresses, endpointSlices, clusterRanges },
    { place, pulse: () => "alive" },
  );
  const metadata = { namespace: "egress-nat", name: "ranges", uid: "ranges" };
  clusterRanges.put(ClusterRanges.parse({ metadata, data: { ranges: "10.96.0.0/16" } }));
  egresses.put(egress({ gatewaySelection: "Agent", sessionAffinity: "None" }, [], { serviceUID: "s1" }));
  for (const family of FAMILIES) endpointSlices.put(endpointSlice(family, hints[family]));
  const [wide] = clientConfig(clientRecord(), view).egresses;
  return wide?.gateways.filter(({ flows }) => flows === undefined) ?? [];
}

const inEachFamily = (...gateways: readonly (typeof GATEWAYS)["near"][]) =>
  FAMILIES.flatMap((family) => gateways.map((gateway) => ({ [family]: gateway[family] })));

test.each(
  FAMILIES.flatMap((family) => [
    { family, kind: "forZones", here: "a", elsewhere: "b" },
    { family, kind: "forNodes", here: "n1", elsewhere: "n2" },
  ]),
)(
  "flows begin with the gateway that is meant for where the client is: $kind, said in $family",
  ({ family, kind, here, elsewhere }) => {
    const hints = { near: { [kind]: [{ name: here }] }, far: { [kind]: [{ name: elsewhere }] } };
    expect(chosen({ ipv4: {}, ipv6: {}, [family]: hints })).toEqual(inEachFamily(GATEWAYS.near));
  },
);

test("flows begin with any gateway where Kubernetes does not say whom they are meant for", () => {
  expect(chosen({ ipv4: {}, ipv6: {} })).toEqual(inEachFamily(GATEWAYS.near, GATEWAYS.far));
});
