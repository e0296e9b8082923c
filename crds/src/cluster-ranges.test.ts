import { expect, test } from "vitest";
import { ClusterRanges, clusterRangesData } from "./cluster-ranges.ts";

const metadata = {
  name: "egress-nat-cluster-ranges",
  namespace: "egress-nat",
  uid: "u",
  resourceVersion: "1",
};

test("what is published is what is read", () => {
  for (const cidrs of [[], ["10.96.0.0/12"], ["10.244.0.0/16", "fd00:244::/56"]]) {
    const raw = { metadata, data: clusterRangesData(cidrs) };
    expect(ClusterRanges.parse(raw).data?.ranges).toEqual(cidrs);
  }
});

test("before an operator has published anything, nothing is known", () => {
  expect(ClusterRanges.parse({ metadata }).data).toBeUndefined();
});

test("a line that is no network makes none of it count", () => {
  const raw = { metadata, data: { ranges: "10.96.0.0/12\n10.244.0.0/33\n" } };
  expect(() => ClusterRanges.parse(raw)).toThrow(/10\.244\.0\.0\/33/);
});
