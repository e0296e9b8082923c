import { describe, expect, test } from "vitest";
import { type ClusterFacts, clusterRanges, rangesBySource } from "./ranges.ts";
import { NodeHead, ServiceAddresses, ServiceCidr } from "./sources.ts";

const metadata = { name: "n", namespace: "default", uid: "u", resourceVersion: "1" };
const NOTHING: ClusterFacts = { configured: [], serviceCidrs: [], nodes: [], services: [] };

const rangesOf = (facts: Partial<ClusterFacts>) => clusterRanges(rangesBySource({ ...NOTHING, ...facts }));
const node = (spec: object, addresses: readonly object[] = []) =>
  NodeHead.parse({ metadata, spec, status: { addresses } });

describe("the networks of a cluster", () => {
  test("are those of Services, of the pods of all nodes and of the nodes, as few as can be", () => {
    const internal = (address: string) => ({ type: "InternalIP", address });
    const nodes = [
      node({ podCIDRs: ["10.244.0.0/24", "fd00:244::/64"] }, [
        internal("192.0.2.2"),
        internal("2001:db8::2"),
      ]),
      node({ podCIDRs: ["10.244.1.0/24"] }, [internal("192.0.2.3"), { type: "Hostname", address: "node-2" }]),
    ];
    const serviceCidrs = [
      ServiceCidr.parse({ metadata, spec: { cidrs: ["10.96.0.0/12", "fd00:96::/112"] } }),
    ];
    expect(rangesOf({ nodes, serviceCidrs })).toEqual([
      "10.96.0.0/12",
      "10.244.0.0/23",
      "192.0.2.2/31",
      "2001:db8::2/128",
      "fd00:96::/112",
      "fd00:244::/64",
    ]);
  });

  test("are those that the administrator names, too", () => {
    const nodes = [node({ podCIDRs: ["10.244.3.0/24"] })];
    expect(rangesOf({ nodes, configured: ["10.244.0.0/16", "100.64.0.0/10"] })).toEqual([
      "10.244.0.0/16",
      "100.64.0.0/10",
    ]);
  });

  test("are nothing that a node without pod networks and addresses would add", () => {
    expect(rangesOf({ nodes: [NodeHead.parse({ metadata }), node({})] })).toEqual([]);
  });

  test("are the addresses of Services for callers from outside, where they are asked for", () => {
    const services = [
      ServiceAddresses.parse({
        metadata,
        spec: { externalIPs: ["198.51.100.7"] },
        status: { loadBalancer: { ingress: [{ ip: "203.0.113.5" }, { hostname: "lb.example" }] } },
      }),
      ServiceAddresses.parse({ metadata, spec: {}, status: { loadBalancer: {} } }),
    ];
    expect(rangesOf({ services })).toEqual(["198.51.100.7/32", "203.0.113.5/32"]);
  });
});
