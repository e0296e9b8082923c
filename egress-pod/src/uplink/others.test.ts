import { expect, test } from "vitest";
import { GatewayEgress } from "../egress.ts";
import { askUplinksBy, othersOf } from "./others.ts";

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

test("others are those that the status names, asked as far as they serve", async () => {
  const asked: unknown[] = [];
  const ask = async (gateways: unknown) => {
    asked.push(gateways);
    return new Set<never>();
  };
  let gateways: object[] = [];
  const egress = () =>
    GatewayEgress.parse({
      metadata: { name: "nat", namespace: "internet", uid: "u", generation: 1 },
      spec: { destinations: ["0.0.0.0/0"] },
      status: { gateways },
    });
  const { askOthers, isAlone } = othersOf(egress, ["10.244.1.1"], ask);
  const gateway = (address: string, state: string, rest = {}) => ({
    ...{ name: address, addresses: [address], state },
    ...rest,
  });
  gateways = [gateway("10.244.1.1", "Ready")];
  expect(isAlone()).toBe(true);
  gateways.push(gateway("10.244.1.2", "Down"));
  expect(isAlone()).toBe(false);
  gateways.push(gateway("10.244.1.3", "Ready"), gateway("10.244.1.4", "Down", { reportedBy: "node-1" }));
  await askOthers(signal);
  expect(asked).toEqual([[["10.244.1.3"], ["10.244.1.4"]]]);
});
