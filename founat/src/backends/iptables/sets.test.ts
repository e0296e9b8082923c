import { type Family, rangeOf } from "@egress-nat/addresses";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseCidr } from "../../routing/cidr.ts";
import { gatewayPolicyOf } from "../../testing/configs.ts";
import { parseSets, setChanges } from "./sets.ts";

/** What `ipset save` prints once lines were done. */
function saved(lines: readonly string[]): string {
  const sets = new Map<string, { create: string; elements: Set<string> }>();
  for (const line of lines) {
    const [verb, name = "", ...words] = line.split(" ");
    const set = sets.get(name) ?? { create: line, elements: new Set<string>() };
    if (verb === "create") sets.set(name, set);
    if (verb === "add") set.elements.add(words.join(" "));
    if (verb === "swap") {
      const [other = ""] = words;
      const [a, b] = [set.elements, sets.get(other)?.elements ?? new Set<string>()];
      sets.set(name, { ...set, elements: b });
      sets.set(other, { create: "", elements: a });
    }
  }
  return Array.from(sets, ([name, { elements }]) =>
    [`create ${name} hash`, ...Array.from(elements, (element) => `add ${name} ${element}`), ""].join("\n"),
  ).join("");
}

const allowed = (text: string) => parseSets(text).get("en-allowed4") ?? [];

/** Whether a lookup finds an address: the longest prefix counts (ipset(8), hash:net). */
function matches(elements: readonly string[], family: Family, address: bigint): boolean {
  const around = elements
    .map((element) => ({
      prefix: parseCidr(element.split(" ", 1)[0] ?? ""),
      not: element.endsWith(" nomatch"),
    }))
    .filter(
      ({ prefix }) => prefix.family === family && prefix.first <= address && address <= rangeOf(prefix).last,
    );
  const longest = around.toSorted((a, b) => b.prefix.length - a.prefix.length)[0];
  return longest !== undefined && !longest.not;
}

const cidrs = fc.array(
  fc
    .tuple(fc.nat({ max: 255 }), fc.nat({ max: 255 }), fc.integer({ min: 1, max: 32 }))
    .map(([a, b, length]) => `${a}.${b}.64.128/${length}`),
  { minLength: 1, maxLength: 6 },
);

test("a set of allowed networks holds what the policy allows, and nothing else", () => {
  fc.assert(
    fc.property(cidrs, cidrs, (destinations, excluded) => {
      const policy = gatewayPolicyOf({ destinations, excluded });
      const elements = allowed(saved(setChanges(policy, new Map()).before));
      const edges = [...destinations, ...excluded]
        .map(parseCidr)
        .flatMap((prefix) => [
          ...[prefix.first - 1n, prefix.first, rangeOf(prefix).last, rangeOf(prefix).last + 1n],
        ]);
      for (const address of edges.filter((edge) => edge >= 0n && edge < 1n << 32n)) {
        const isAllowed = policy.allowed.ipv4.some(({ first, last }) => first <= address && address <= last);
        expect(matches(elements, "ipv4", address)).toBe(isAllowed);
      }
    }),
  );
});

test("everything but a few networks is a short list: a lookup asks for each length of a prefix", () => {
  const elements = allowed(saved(setChanges(gatewayPolicyOf({}), new Map()).before));
  expect(new Set(elements.map((element) => element.split(/[/ ]/)[1])).size).toBeLessThan(16);
});

test("sets that are as they should be are not touched, others change at one instant", () => {
  const { before } = setChanges(gatewayPolicyOf({}), new Map());
  const sets = new Map([...parseSets(saved(before))].filter(([name]) => !name.endsWith("-new")));
  expect(setChanges(gatewayPolicyOf({}), sets)).toEqual({ differences: [], before: [], gone: [] });
  const changed = setChanges(gatewayPolicyOf({ destinations: ["203.0.113.0/24", "::/0"] }), sets);
  expect(changed.differences).toEqual([{ object: "set", text: "ipset set en-allowed4 has other elements" }]);
  expect(changed.before).toEqual([
    expect.stringMatching(/^create en-allowed4-new hash:net family inet /),
    "add en-allowed4-new 203.0.113.0/24",
    "swap en-allowed4-new en-allowed4",
  ]);
  expect(changed.gone).toEqual(["en-allowed4-new"]);
});

test("ipset's spelling of addresses that hold one of IPv4 is no difference", () => {
  const { before } = setChanges(gatewayPolicyOf({}), new Map());
  const text = saved(before).replace("add en-allowed6 ::ffff:0:0/96", "add en-allowed6 ::ffff:0.0.0.0/96");
  expect(text).toContain("0.0.0.0/96");
  expect(setChanges(gatewayPolicyOf({}), parseSets(text)).before).toEqual([]);
});
