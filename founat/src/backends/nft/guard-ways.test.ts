import { expect, test } from "vitest";
import type { Pin } from "../../client/mark.ts";
import { waySets, ways } from "./guard-ways.ts";

const pin = (number: number): Pin => ({
  ...{ family: "ipv4", link: `fou4_${number}`, number },
  mark: { value: number << 24, mask: 0xff000000 },
});
const [one, two, three] = [pin(1), pin(2), pin(3)];

test("two Egresses that share a gateway spread their flows each over its own gateways", () => {
  const choices = [
    { link: "fou4_1", pins: [one, two] },
    { link: "fou4_3", pins: [one, three] },
  ];
  const all = { pins: [one, two, three], choices, late: { ipv4: [], ipv6: [] }, oneWay: false };
  const chains = new Map(ways(all).map(({ name, rules }) => [name, rules.map(({ text }) => text).join()]));
  const waysOf = (link: string) => {
    const { elements = [] } = waySets(all).find(({ name }) => name === "choices") ?? {};
    return chains.get(elements.find((element) => element.startsWith(link))?.split("goto ")[1] ?? "");
  };
  expect(waysOf("fou4_1")).toContain("mod 2 vmap { 0 : goto take_1, 1 : goto take_2 }");
  expect(waysOf("fou4_3")).toContain("mod 2 vmap { 0 : goto take_1, 1 : goto take_3 }");
});
