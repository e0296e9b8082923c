import { describe, expect, it } from "vitest";
import { optIns } from "./opt-in.ts";

const NAT = { namespace: "internet", name: "nat" };

describe("annotations", () => {
  it("name Egresses in their order, each once", () => {
    expect(
      optIns({
        "egress.coil.cybozu.com/office": "vpn, nat,vpn",
        "example.com/other": "x",
        "egress.coil.cybozu.com/internet": "nat",
      }),
    ).toEqual([{ namespace: "office", name: "vpn" }, { namespace: "office", name: "nat" }, NAT]);
  });

  it.each([
    ["egress.coil.cybozu.com/internet", ""],
    ["egress.coil.cybozu.com/internet", "nat,"],
    ["egress.coil.cybozu.com/internet", "Nat"],
    ["egress.coil.cybozu.com/internet", "a b"],
    ["egress.coil.cybozu.com/internet", "-nat"],
    ["egress.coil.cybozu.com/", "nat"],
    ["egress.coil.cybozu.com/a/b", "nat"],
  ])("%s: %j are refused, with the right way to write them", (key, value) => {
    expect(() => optIns({ [key]: value })).toThrow(
      expect.objectContaining({
        code: "annotation-malformed",
        retryable: false,
        remedy: expect.stringMatching(/write egress\.coil\.cybozu\.com\/<namespace/),
      }),
    );
  });
});
