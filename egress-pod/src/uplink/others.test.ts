import { expect, test } from "vitest";
import { askUplinksBy } from "./others.ts";

const signal = new AbortController().signal;

test("other gateways vouch for families, each by any of its addresses", async () => {
  const said: Record<string, string[] | undefined> = {
    "10.244.1.1": ["uplink-ipv6"],
    "10.244.1.2": [],
    "10.244.1.3": undefined,
    "fd00::3": ["uplink-ipv6"],
  };
  const probe = async (address: string) => {
    if (address === "10.244.1.9") throw new Error("address family not supported");
    const keys = said[address];
    return keys && new Map(keys.map((key) => [key, "works"]));
  };
  const ask = (...gateways: string[][]) => askUplinksBy({ probe })(gateways, signal);
  expect(await ask(["10.244.1.1"], ["10.244.1.2"])).toEqual(new Set(["ipv6"]));
  expect(await ask(["10.244.1.3", "fd00::3"], ["10.244.1.9"])).toEqual(new Set(["ipv6"]));
  expect(await ask(["10.244.1.2"], ["10.244.1.3"])).toEqual(new Set());
  expect(await ask()).toEqual(new Set());
});
