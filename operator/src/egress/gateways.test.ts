import { expect, test } from "vitest";
import { gatewayStatuses } from "./gateways.ts";

const common = { nodeName: "n1", addresses: ["10.244.1.7", "fd00:244:1::7"] };
const node = { node: "n1", addresses: common.addresses };

test("gateways are listed by name, with what they do", () => {
  const endpoints = [
    { ...common, name: "nat-c", ready: true, serving: true, terminating: false },
    { ...common, name: "nat-b", ready: false, serving: true, terminating: true },
    { ...common, name: "nat-a", ready: false, serving: false, terminating: false },
    { ...common, name: "nat-d", nodeName: undefined, ready: false, serving: false, terminating: true },
  ];
  const reasons = new Map([
    ["nat-a", "ip_forward is 0"],
    ["nat-c", "of a time before"],
  ]);
  expect(gatewayStatuses(endpoints, reasons)).toEqual([
    { ...node, name: "nat-a", state: "Down", reason: "ip_forward is 0" },
    { ...node, name: "nat-b", state: "Draining" },
    { ...node, name: "nat-c", state: "Ready" },
    { addresses: common.addresses, name: "nat-d", state: "Draining" },
  ]);
});
