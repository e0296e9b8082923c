import { describe, expect, test } from "vitest";
import { EndpointSlice, mergeEndpoints } from "./endpoint-slice.ts";

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
