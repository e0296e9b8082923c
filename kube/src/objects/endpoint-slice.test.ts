import { describe, expect, test } from "vitest";
import { EndpointSlice, isOfService, mergeEndpoints } from "./endpoint-slice.ts";

function slice(name: string, ...endpoints: object[]): EndpointSlice {
  return EndpointSlice.parse({ metadata: { name, namespace: "internet", uid: name }, endpoints });
}

function endpoint(address: string, uid: string, conditions: object = { ready: true }) {
  return {
    addresses: [address],
    conditions,
    nodeName: "n1",
    targetRef: { kind: "Pod", name: `pod-${uid}`, uid },
  };
}

describe("the pods behind EndpointSlices", () => {
  test("have their addresses of both families", () => {
    const slices = [slice("v4", endpoint("10.244.1.7", "a")), slice("v6", endpoint("fd00:244:1::7", "a"))];
    expect(mergeEndpoints(slices)).toEqual([
      {
        name: "pod-a",
        nodeName: "n1",
        addresses: ["10.244.1.7", "fd00:244:1::7"],
        ready: true,
        serving: true,
        terminating: false,
      },
    ]);
  });

  test("have IP addresses: a slice may hold names instead, or whatever somebody wrote into it", () => {
    const slices = [
      slice(
        "fqdn",
        endpoint("outside.example", "a"),
        endpoint("10.0.0.0/8", "b"),
        endpoint("fe80::1%eth0", "c"),
      ),
      slice("v4", endpoint("10.244.1.7", "d")),
    ];
    expect(mergeEndpoints(slices).map(({ addresses }) => addresses)).toEqual([["10.244.1.7"]]);
  });

  test("that are being moved from one slice to another stand there once", () => {
    const slices = [
      slice("old", endpoint("10.244.1.7", "a", { ready: false })),
      slice("new", endpoint("10.244.1.7", "a")),
    ];
    expect(mergeEndpoints(slices)).toMatchObject([{ addresses: ["10.244.1.7"], ready: true }]);
  });

  test.each([
    [{}, { ready: true, serving: true, terminating: false }],
    [{ ready: null }, { ready: true, serving: true }],
    [
      { ready: false, serving: true, terminating: true },
      { ready: false, serving: true, terminating: true },
    ],
    [{ ready: false }, { ready: false, serving: false }],
  ])("with the conditions %j are %j", (conditions, expected) => {
    expect(mergeEndpoints([slice("s", endpoint("10.244.1.7", "a", conditions))])).toMatchObject([expected]);
  });

  test("are none where a slice has none", () => {
    const empty = { metadata: { name: "s", namespace: "internet", uid: "s" }, endpoints: null };
    expect(mergeEndpoints([EndpointSlice.parse(empty)])).toEqual([]);
  });
});

describe("an EndpointSlice of a Service", () => {
  const owner = { apiVersion: "v1", kind: "Service", name: "nat", uid: "s1", controller: true };
  const ownedBy = (...ownerReferences: readonly object[]) =>
    EndpointSlice.parse({ metadata: { name: "s", namespace: "internet", uid: "s", ownerReferences } });

  test.each([
    ["is one that this very Service controls", [owner], "s1", true],
    ["is one that a Service of its name controls, where its UID is not known", [owner], undefined, true],
    ["is none that was left by a Service of that name", [owner], "s2", false],
    ["is none that nobody owns", [], undefined, false],
    ["is none of another Service", [{ ...owner, name: "other" }], undefined, false],
    ["is none that it owns without control", [{ ...owner, controller: false }], "s1", false],
    ["is none of another kind", [{ ...owner, kind: "Egress" }], "s1", false],
    ["is none of a kind of that name in another group", [{ ...owner, apiVersion: "x/v1" }], "s1", false],
  ])("%s", (_, owners, uid, expected) => {
    expect(isOfService(ownedBy(...owners), { name: "nat", uid })).toBe(expected);
  });
});
